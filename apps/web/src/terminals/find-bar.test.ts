import { expect, test } from 'bun:test'
import { findWordsOf } from './find-bar.tsx'

test('a search says which of how many is shown', () => {
  expect(findWordsOf('x', { at: 2, count: 7, isCounted: true })).toBe('2 of 7')
  expect(findWordsOf('x', { at: undefined, count: 7, isCounted: true })).toBe('7 results')
  expect(findWordsOf('x', { at: undefined, count: 1000, isCounted: false })).toBe('1000+ results')
  expect(findWordsOf('x', { at: undefined, count: 0, isCounted: true })).toBe('No results')
  expect(findWordsOf('', { at: undefined, count: 0, isCounted: true })).toBe('')
})
