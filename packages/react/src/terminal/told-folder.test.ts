import { expect, test } from 'bun:test'
import { toldFolder } from './told-folder.ts'

test('a shell says its folder, encoded or not', () => {
  expect(toldFolder('file://dev/home/user/workspace')).toBe('/home/user/workspace')
  expect(toldFolder('file:///a%20b/caf%C3%A9')).toBe('/a b/café')
  expect(toldFolder('file://dev/100%/é')).toBe('/100%/é')
})

test('what is no folder is not believed', () => {
  for (const data of ['', 'http://dev/a', 'file://dev', '/home/user', `file://x/${'a'.repeat(5000)}`])
    expect(toldFolder(data)).toBeUndefined()
})
