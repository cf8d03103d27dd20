import { expect, test } from 'bun:test'
import { readChangedPath, renamedText } from './changed-path.ts'

test('a path has a folder only where there is one', () => {
  expect(readChangedPath('lines.txt')).toEqual({ name: 'lines.txt', folder: undefined, isFolder: false })
  expect(readChangedPath('a/b/c')).toEqual({ name: 'c', folder: 'a/b', isFolder: false })
})

test('a folder of which git knows nothing has its name without the slash', () => {
  expect(readChangedPath('newdir/')).toEqual({ name: 'newdir', folder: undefined, isFolder: true })
  expect(readChangedPath('a/newdir/')).toEqual({ name: 'newdir', folder: 'a', isFolder: true })
})

test('a renamed file is said with the name it had, and the folder where that was another one', () => {
  expect(renamedText('ren.txt', 'renamed.txt')).toBe('ren.txt → renamed.txt')
  expect(renamedText('a/one', 'a/two')).toBe('one → two')
  expect(renamedText('a/one', 'b/one')).toBe('a/one → one')
})
