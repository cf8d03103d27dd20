import { expect, test } from 'bun:test'
import { heirOf } from './tree-heir.ts'
import type { TreeLine } from './tree-lines.ts'

const item = (path: string): TreeLine => ({
  kind: 'item',
  path,
  depth: path.split('/').length - 1,
  isFolder: false,
  isOpen: false,
  position: 1,
  setSize: 1,
  entry: {
    name: path.split('/').at(-1) ?? '',
    kind: 'file',
    size: 0,
    mtimeMs: 0,
    etag: '',
  },
})
const note: TreeLine = { kind: 'note', path: 'd', depth: 1, text: 'Empty', hasMore: false }
const before = [...['a', 'a/x', 'a/y', 'a/z', 'b', 'd'].map(item), note, item('e')]

/** Which line comes after some are gone, one of which had the keyboard. */
function after(path: string, ...gone: readonly string[]): string | undefined {
  const now = before.filter((line) => ![path, ...gone].includes(line.path))
  return heirOf(before, now, path)
}

test('the next of the same folder comes after what is gone, also behind what was in it', () => {
  expect([after('a/x'), after('a', 'a/x', 'a/y', 'a/z'), after('b')]).toEqual(['a/y', 'b', 'd'])
  expect(after('d')).toBe('e')
  expect(after('a/x', 'a/y')).toBe('a/z')
})

test('the one before comes after the last of a folder', () => {
  expect([after('a/z'), after('e'), after('a/y', 'a/z')]).toEqual(['a/y', 'd', 'a/x'])
})

test('the folder comes after the only one in it, and what follows the folder when that is gone as well', () => {
  expect(after('a/x', 'a/y', 'a/z')).toBe('a')
  expect(after('a/x', 'a/y', 'a/z', 'a')).toBe('b')
})

test('nothing comes after the last of all, or after what was not there', () => {
  expect(heirOf([item('a')], [], 'a')).toBeUndefined()
  expect(heirOf(before, before, 'nowhere')).toBeUndefined()
})
