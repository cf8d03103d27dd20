import { expect, test } from 'bun:test'
import { printable, revealInvisible } from './printable.ts'

test('passes only printable text out of the terminal (threat T24)', () => {
  expect(printable('vim \u{1f99c} ä.txt')).toBe('vim \u{1f99c} ä.txt')
  expect(printable('\u{1b}]0;x\u{7}a\nb\u{202e}c\u{2066}d\u{9b}31m\u{2028}')).toBe(']0;xabcd31m')
  expect(printable('a\u{2800}\u{3164}\u{115f}\u{200b}\u{fe0f}b')).toBe('ab')
  expect(printable('x'.repeat(10_000))).toHaveLength(120)
})

test('reveals what hides or reorders parts of a text, but no lines and emoji', () => {
  expect(revealInvisible('rm\u{202e} x\u{3164}\u{200b}\u{3}\u{7f}\ud800')).toBe(
    'rm<U+202E> x<U+3164><U+200B><^C><^?><U+D800>',
  )
  const plain = 'a\tb\r\nc \u{26a0}\u{fe0f} \u{2764}\u{fe0f}\u{200d}\u{1f525} é 한'
  expect(revealInvisible(plain)).toBe(plain)
  expect(revealInvisible('1\u{fe0f}\u{200d}')).toBe('1<U+FE0F><U+200D>')
})
