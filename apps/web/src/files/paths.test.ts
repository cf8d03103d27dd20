import { expect, test } from 'bun:test'
import { cleanPath, movedPath } from './paths.ts'

test('normalizes a typed path', () => {
  expect(['a/b', './a//b/', 'a/./b'].map(cleanPath)).toEqual(['a/b', 'a/b', 'a/b'])
})

test('moves what is inside a folder, and nothing with only a common prefix', () => {
  expect(movedPath('a.txt', 'a.txt', 'b/c.txt')).toBe('b/c.txt')
  expect(movedPath('old/x/y', 'old', 'new')).toBe('new/x/y')
  expect(movedPath('older/x', 'old', 'new')).toBeUndefined()
  expect(movedPath('x', '.', 'new')).toBeUndefined()
})
