import { expect, test } from 'bun:test'
import type { TreeLine } from './tree-lines.ts'
import { nextSelection, findLineByKey, findLineByText, appendTyped } from './tree-navigation.ts'

const item = (path: string, depth = 0): TreeLine => ({
  kind: 'item',
  path,
  depth,
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
const note: TreeLine = { kind: 'note', path: 'a', depth: 1, text: 'Loading more…', hasMore: true }
const lines = [item('a', 0), item('a/b', 1), note, item('cc'), item('Cd'), item('d 1')]
const go = (at: number, key: string): number | undefined => findLineByKey(lines, { at, key, pageRows: 2 })

test('navigation keys move between entries and skip messages', () => {
  expect([go(1, 'ArrowDown'), go(3, 'ArrowUp')]).toEqual([3, 1])
  expect([go(5, 'ArrowDown'), go(0, 'ArrowUp')]).toEqual([undefined, undefined])
  expect([go(3, 'Home'), go(0, 'End')]).toEqual([0, 5])
  expect([go(0, 'PageDown'), go(4, 'PageDown')]).toEqual([3, 5])
  expect([go(4, 'PageUp'), go(1, 'PageUp')]).toEqual([1, 0])
  expect(findLineByKey([item('a'), note], { at: 0, key: 'PageDown', pageRows: 5 })).toBe(0)
})

test('navigation keys enter and leave a folder', () => {
  expect([go(0, 'ArrowRight'), go(1, 'ArrowRight')]).toEqual([1, undefined])
  expect([go(1, 'ArrowLeft'), go(3, 'ArrowLeft')]).toEqual([0, undefined])
})

test('joins letters typed in quick succession', () => {
  const first = appendTyped(undefined, 'd', 0)
  expect(appendTyped(first, ' ', 500).text).toBe('d ')
  expect(appendTyped(first, 'x', 1_000).text).toBe('x')
})

test('type-ahead finds the next name with the typed prefix', () => {
  expect(findLineByText(lines, 0, 'c')).toBe(3)
  expect(findLineByText(lines, 3, 'c')).toBe(4)
  expect(findLineByText(lines, 4, 'c')).toBe(3)
  expect(findLineByText(lines, 4, 'cc')).toBe(3)
  expect(findLineByText(lines, 0, 'dd')).toBe(5)
  expect(findLineByText(lines, 0, 'd 1')).toBe(5)
  expect(findLineByText(lines, 4, 'cd')).toBe(4)
  expect(findLineByText(lines, 0, 'x')).toBeUndefined()
})

const emptyNote: TreeLine = { kind: 'note', path: 'd', depth: 1, text: 'Empty', hasMore: false }
const before = [
  ...['a', 'a/x', 'a/y', 'a/z', 'b', 'd'].map((path) => item(path, path.split('/').length - 1)),
  emptyNote,
  item('e'),
]

/** The next selection after some lines are removed, one of which was focused. */
function after(path: string, ...gone: readonly string[]): string | undefined {
  const now = before.filter((line) => ![path, ...gone].includes(line.path))
  return nextSelection(before, now, path)
}

test('selects the next entry of the folder after a removal', () => {
  expect([after('a/x'), after('a', 'a/x', 'a/y', 'a/z'), after('b')]).toEqual(['a/y', 'b', 'd'])
  expect(after('d')).toBe('e')
  expect(after('a/x', 'a/y')).toBe('a/z')
})

test('selects the previous entry after the last one was removed', () => {
  expect([after('a/z'), after('e'), after('a/y', 'a/z')]).toEqual(['a/y', 'd', 'a/x'])
})

test('selects the folder after its only entry was removed, and what follows when the folder is gone too', () => {
  expect(after('a/x', 'a/y', 'a/z')).toBe('a')
  expect(after('a/x', 'a/y', 'a/z', 'a')).toBe('b')
})

test('selects nothing after the last entry of all, or after an unknown one', () => {
  expect(nextSelection([item('a')], [], 'a')).toBeUndefined()
  expect(nextSelection(before, before, 'nowhere')).toBeUndefined()
})
