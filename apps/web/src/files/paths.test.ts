import { expect, test } from 'bun:test'
import { cleanPath, movedPath } from './paths.ts'

test('a path is spelt as lists spell it', () => {
  expect(['a/b', './a//b/', 'a/./b'].map(cleanPath)).toEqual(['a/b', 'a/b', 'a/b'])
})

test('a move takes along what is in a folder, and nothing that only begins like it', () => {
  expect(movedPath('a.txt', 'a.txt', 'b/c.txt')).toBe('b/c.txt')
  expect(movedPath('old/x/y', 'old', 'new')).toBe('new/x/y')
  expect(movedPath('older/x', 'old', 'new')).toBeUndefined()
  expect(movedPath('x', '.', 'new')).toBeUndefined()
})
