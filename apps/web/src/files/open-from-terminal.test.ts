import { expect, test } from 'bun:test'
import { workspacePath } from './open-from-terminal.ts'

test('what programs print leads into the workspace or nowhere', () => {
  expect(workspacePath('src/a.ts')).toBe('src/a.ts')
  expect(workspacePath('./src/../b.ts')).toBe('b.ts')
  expect(workspacePath('/home/user/workspace/x/y.c')).toBe('x/y.c')
  expect(workspacePath('/workspace/x/y.c')).toBe('x/y.c')
  for (const printed of ['/etc/passwd', '../x', 'a/../../x', '.', '/home/user/workspace/'])
    expect(workspacePath(printed)).toBeUndefined()
})
