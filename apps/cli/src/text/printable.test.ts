import { expect, test } from 'bun:test'
import { printable } from './printable.ts'

test.each([
  ['plain', 'plain'],
  ['two\nlines\r\n', 'two lines'],
  ['\x1b]0;title\x07\x1b[2Jx', ']0;title [2Jx'],
  ['a\u2800\u3164b', 'a b'],
  ['a\u202eb\u2028c\u009bd', 'a b c d'],
])('printable leaves no control character in %j', (text, shown) => {
  expect(printable(text)).toBe(shown)
})

test('printable is bounded', () => {
  expect(printable('x'.repeat(10_000))).toHaveLength(500)
})
