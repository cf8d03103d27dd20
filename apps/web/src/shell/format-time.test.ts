import { expect, test } from 'bun:test'
import { formatAge, formatRelativeTime } from './format-time.ts'

const HOUR = 3_600_000

test('formats relative times', () => {
  expect(formatRelativeTime(3 * HOUR, 0)).toBe('in 3 hours')
  expect(formatRelativeTime(0, 50 * HOUR)).toBe('2 days ago')
  expect(formatRelativeTime(10_000, 0)).toBe('now')
})

test('formats ages', () => {
  expect(formatAge(0, 90_000)).toBe('1 min')
  expect(formatAge(0, 5 * HOUR)).toBe('5 h')
  expect(formatAge(0, 72 * HOUR)).toBe('3 d')
  expect(formatAge(10, 0)).toBe('<1 min')
})
