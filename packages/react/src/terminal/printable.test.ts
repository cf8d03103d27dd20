import { expect, test } from 'bun:test'
import { printable } from './printable.ts'

test('passes only printable text out of the terminal (threat T24)', () => {
  expect(printable('vim \u{1f99c} ä.txt')).toBe('vim \u{1f99c} ä.txt')
  expect(printable('\u{1b}]0;x\u{7}a\nb\u{202e}c\u{2066}d\u{9b}31m\u{2028}')).toBe(']0;xabcd31m')
  expect(printable('a\u{2800}\u{3164}\u{115f}\u{200b}\u{fe0f}b')).toBe('ab')
  expect(printable('x'.repeat(10_000))).toHaveLength(120)
})
