import { expect, test } from 'bun:test'
import { escapeName, formatLongListing } from './file-lines.ts'

test('escapes names for a terminal (threat T24)', () => {
  expect(escapeName('plain \u{e9}\u{1f984} -rf')).toBe('plain \u{e9}\u{1f984} -rf')
  expect(escapeName('\x1b[31m\n\t\\\x7f')).toBe('\\x1b[31m\\n\\t\\\\\\x7f')
  expect(escapeName('a\u202eb\u2028c\udcff')).toBe('a\\u{202e}b\\u{2028}c\\xff')
})

test('aligns long listings, and omits the time of old files', () => {
  const nowMs = new Date(2026, 5, 15, 12, 30).getTime()
  const entry = { kind: 'file', size: 7, mode: 0o4750, mtimeMs: nowMs, etag: '', name: 'a' } as const
  const old = {
    ...entry,
    kind: 'folder',
    size: 1234,
    mtimeMs: new Date(2020, 0, 2).getTime(),
    name: 'b',
  } as const
  expect(formatLongListing([entry, old], nowMs)).toBe(
    '-rwxr-x---     7  2026-06-15 12:30  a\ndrwxr-x---  1234  2020-01-02        b\n',
  )
  expect(formatLongListing([], nowMs)).toBe('')
  const link = { ...entry, kind: 'link', size: 3 } as const
  const links = [
    { ...link, target: 'folder' } as const,
    { ...link, target: 'file' } as const,
    { ...link, target: null },
    link,
  ]
  expect(
    formatLongListing(links, nowMs)
      .split('\n')
      .map((line) => line.slice(33)),
  ).toEqual(['a -> (a folder)', 'a -> (a file)', 'a -> (outside or missing)', 'a', ''])
})
