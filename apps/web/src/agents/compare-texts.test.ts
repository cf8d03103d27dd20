import { expect, test } from 'bun:test'
import { compareTexts } from './compare-texts.ts'

function shown(before: string, after: string): string {
  const signs = { added: '+', removed: '-', same: ' ', hunk: '', note: '' }
  const { lines = [] } = compareTexts('a.txt', before, after) ?? {}
  return lines.map(({ kind, text, line }) => `${line ?? ''}${signs[kind]}${text}`).join('|')
}

/** Lines from 1. */
const numbers = (count: number): string[] => Array.from({ length: count }, (_, at) => `${at + 1}\n`)

test('compares lines, with three unchanged ones around', () => {
  const after = numbers(20).with(9, 'ten\n')
  expect(shown(numbers(20).join(''), after.join(''))).toBe(
    '@@ -7 +7 @@|7 7|8 8|9 9|10-10|10+ten|11 11|12 12|13 13',
  )
  expect(compareTexts('a.txt', numbers(20).join(''), after.join(''))).toMatchObject({ added: 1, removed: 1 })
})

test('joins changes that are near each other, and numbers lines of both files', () => {
  const before = numbers(30)
  const after = ['0\n', ...before.slice(0, 4), 'new\n', ...before.slice(4, 25), ...before.slice(26)]
  expect(shown(before.join(''), after.join(''))).toBe(
    '@@ -1 +1 @@|1+0|2 1|3 2|4 3|5 4|6+new|7 5|8 6|9 7|@@ -23 +25 @@|25 23|26 24|27 25|26-26|28 27|29 28|30 29',
  )
})

test('shows new, deleted and equal files, and a missing line break', () => {
  expect(shown('', 'a\nb')).toBe('@@ -1 +1 @@|1+a|2+b|No newline at end of file')
  expect(shown('a\n', '')).toBe('@@ -1 +1 @@|1-a')
  expect(shown('a\n', 'a\n')).toBe('')
  expect(shown('a\n', 'a')).toBe('@@ -1 +1 @@|1-a|1+a|No newline at end of file')
})

test('does not compare more lines than it can tell apart', () => {
  expect(compareTexts('a.txt', '', numbers(60_000).join(''))).toBeUndefined()
})
