import { expect, test } from 'bun:test'
import { withControl } from './key-row.tsx'

test('turns letters into control characters, in either case', () => {
  expect(['c', 'C', 'd', '[', '\\', '@', ' ', '?'].map(withControl)).toEqual([
    '\u{3}',
    '\u{3}',
    '\u{4}',
    '\u{1b}',
    '\u{1c}',
    '\0',
    '\0',
    '\u{7f}',
  ])
})

test('adds the modifier to arrow keys, in either form', () => {
  expect(['\u{1b}[C', '\u{1b}OD'].map(withControl)).toEqual(['\u{1b}[1;5C', '\u{1b}[1;5D'])
})

test('leaves everything else unchanged', () => {
  expect(['1', 'ä', '\u{1b}[H', 'ab'].map(withControl)).toEqual(['1', 'ä', '\u{1b}[H', 'ab'])
})
