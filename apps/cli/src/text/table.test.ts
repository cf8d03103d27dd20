import { expect, test } from 'bun:test'
import { formatAge, formatJson, formatTable, formatTimeLeft } from './table.ts'

test('formatTable aligns columns by display width', () => {
  expect(
    formatTable(
      ['NAME', 'STATE'],
      [
        ['dev', 'running'],
        ['日本', 'stopped'],
      ],
    ),
  ).toBe('NAME  STATE\ndev   running\n日本  stopped\n')
})

test('formatTable moves the widest column to its own lines in a narrow terminal', () => {
  const id = 'i'.repeat(32)
  const rows = [
    ['dev', id, 'running'],
    ['b', id, '-'],
  ]
  const wide = `NAME  ${'ID'.padEnd(32)}  STATE\ndev   ${id}  running\nb     ${id}  -\n`
  expect(formatTable(['NAME', 'ID', 'STATE'], rows, 47)).toBe(wide)
  expect(formatTable(['NAME', 'ID', 'STATE'], rows, 46)).toBe(
    `NAME  STATE\n  ID\ndev   running\n  ${id}\nb     -\n  ${id}\n`,
  )
})

test('formatTable removes control characters (threat T24)', () => {
  const text = formatTable(['A'], [['\x1b]0;x\x07a\nb\u202e\u009b2Jc'], ['x'.repeat(500)]])
  expect(text.replaceAll('\n', '')).toMatch(/^[^\p{C}]+$/u)
  expect(text.split('\n')).toHaveLength(4)
  expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
})

test.each([
  [0, '0s'],
  [59_999, '59s'],
  [60_000, '1m'],
  [3_600_000, '1h'],
  [47 * 3_600_000, '47h'],
  [48 * 3_600_000, '2d'],
  [-5_000, '0s'],
])('formatAge formats %d ms as %s', (ms, text) =>
  expect(formatAge(1_000_000_000_000 - ms, 1_000_000_000_000)).toBe(text),
)

test('formatAge of an unknown time is a dash', () => {
  expect([formatAge(null, 1), formatAge(undefined, 1)]).toEqual(['-', '-'])
})

test('formatJson escapes control characters without changing the value (threat T24)', () => {
  const value = { 'a\x9b': 'x\x1b\x07\x7f\u202e\u2028\u{e0001}é日\ud800', n: [1, null] }
  const text = formatJson(value)
  expect(JSON.parse(text)).toEqual(value)
  expect(text.replaceAll('\n', '')).toMatch(/^[^\p{C}\p{Zl}\p{Zp}]+$/u)
  expect(formatJson(undefined)).toBe('null\n')
})

test('formatTimeLeft rounds up', () => {
  expect(formatTimeLeft(7 * 86_400_000, 5_000)).toBe('7d')
  expect(formatTimeLeft(90_000, 0)).toBe('2m')
  expect(formatTimeLeft(1, 1)).toBe('expired')
})
