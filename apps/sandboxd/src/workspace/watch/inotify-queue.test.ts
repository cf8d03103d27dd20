import { expect, test } from 'bun:test'
import { WatchedFolders } from './inotify-queue.ts'

test('removes a folder and all below it, but no sibling', () => {
  const folders = new WatchedFolders()
  for (const [index, path] of ['a', 'a/b', 'a/b/c', 'ab', 'a-b'].entries()) folders.set(path, index + 1)
  expect(folders.forgetBelow('a')).toEqual([1, 2, 3])
  expect(['a', 'a/b', 'ab', 'a-b'].filter((path) => folders.has(path))).toEqual(['ab', 'a-b'])
  expect(folders.size).toBe(2)
  expect(folders.pathOf(1)).toBeUndefined()
})

test('a moved folder has its new path only', () => {
  const folders = new WatchedFolders()
  folders.set('old', 1)
  expect(folders.set('new', 1)).toBeUndefined()
  expect(folders.pathOf(1)).toBe('new')
  expect(folders.has('old')).toBe(false)
  expect(folders.forgetBelow('old')).toEqual([])
  expect(folders.size).toBe(1)
})

test('another folder at the same path replaces it', () => {
  const folders = new WatchedFolders()
  folders.set('x', 1)
  expect(folders.set('x', 2)).toBe(1)
  expect(folders.set('x', 2)).toBeUndefined()
  expect(folders.pathOf(1)).toBeUndefined()
  folders.forget(1)
  expect(folders.has('x')).toBe(true)
  expect(folders.size).toBe(1)
})
