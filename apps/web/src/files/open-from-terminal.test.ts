import { expect, test } from 'bun:test'
import { candidatesOf, endingAs, workspacePath } from './open-from-terminal.ts'

test('maps printed paths into the workspace or to nothing', () => {
  expect(workspacePath('src/a.ts')).toBe('src/a.ts')
  expect(workspacePath('./src/../b.ts')).toBe('b.ts')
  expect(workspacePath('/workspace/x/y.c')).toBe('x/y.c')
  for (const printed of ['/etc/passwd', '../x', 'a/../../x', '.', '/home/user/x', '/workspaces/x'])
    expect(workspacePath(printed)).toBeUndefined()
})

test("tries the shell's directory before the root", () => {
  const folder = '/workspace/app/src'
  expect(candidatesOf({ path: 'lib/a.ts', folder })).toEqual(['app/src/lib/a.ts', 'lib/a.ts'])
  expect(candidatesOf({ path: '../a.ts', folder })).toEqual(['app/a.ts'])
  expect(candidatesOf({ path: 'a.ts', folder: '/workspace' })).toEqual(['a.ts'])
  expect(candidatesOf({ path: 'a.ts', folder: '/tmp' })).toEqual(['a.ts'])
  expect(candidatesOf({ path: 'a.ts' })).toEqual(['a.ts'])
  expect(candidatesOf({ path: '/workspace/a.ts', folder })).toEqual(['a.ts'])
  expect(candidatesOf({ path: '/etc/passwd', folder })).toEqual([])
})

test('accepts files found by name only if they end with the printed path', () => {
  const found = ['app/src/a.ts', 'app/srca.ts', 'src/a.ts', 'a.ts', 'a.ts.map']
  expect(endingAs('src/a.ts', found)).toEqual(['app/src/a.ts', 'src/a.ts'])
  expect(endingAs('./a.ts', found)).toEqual(['app/src/a.ts', 'src/a.ts', 'a.ts'])
  expect(endingAs('../../src/a.ts', found)).toEqual(['app/src/a.ts', 'src/a.ts'])
  expect(endingAs('..', found)).toEqual([])
})
