import { expect, test } from 'bun:test'
import { formatMatches } from './find-bar.tsx'

test('says which of how many matches is shown', () => {
  expect(formatMatches('x', { at: 2, count: 7, isCounted: true })).toBe('2 of 7')
  expect(formatMatches('x', { at: undefined, count: 7, isCounted: true })).toBe('7 results')
  expect(formatMatches('x', { at: undefined, count: 1000, isCounted: false })).toBe('1000+ results')
  expect(formatMatches('x', { at: undefined, count: 0, isCounted: true })).toBe('No results')
  expect(formatMatches('', { at: undefined, count: 0, isCounted: true })).toBe('')
})
