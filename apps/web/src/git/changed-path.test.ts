import { expect, test } from 'bun:test'
import { readChangedPath } from './changed-path.ts'

test('a path has a folder only where there is one', () => {
  expect(readChangedPath('lines.txt')).toEqual({ name: 'lines.txt', folder: undefined, isFolder: false })
  expect(readChangedPath('a/b/c')).toEqual({ name: 'c', folder: 'a/b', isFolder: false })
})

test('a folder of which git knows nothing has its name without the slash', () => {
  expect(readChangedPath('newdir/')).toEqual({ name: 'newdir', folder: undefined, isFolder: true })
  expect(readChangedPath('a/newdir/')).toEqual({ name: 'newdir', folder: 'a', isFolder: true })
})
