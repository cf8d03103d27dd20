import { expect, test } from 'bun:test'
import { ageText, agoOrAhead } from './time-text.ts'

const HOUR = 3_600_000

test('moments are said as people say them', () => {
  expect(agoOrAhead(3 * HOUR, 0)).toBe('in 3 hours')
  expect(agoOrAhead(0, 50 * HOUR)).toBe('2 days ago')
  expect(agoOrAhead(10_000, 0)).toBe('now')
})

test('ages are short', () => {
  expect(ageText(0, 90_000)).toBe('1 min')
  expect(ageText(0, 5 * HOUR)).toBe('5 h')
  expect(ageText(0, 72 * HOUR)).toBe('3 d')
  expect(ageText(10, 0)).toBe('0 min')
})
