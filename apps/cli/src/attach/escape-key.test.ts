import { expect, test } from 'bun:test'
import { parseEscapeKey, splitAtEscape } from './escape-key.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const ESCAPE = { byte: 0x1d, label: 'Ctrl+]' }

test.each([
  ['^]', { byte: 0x1d, label: 'Ctrl+]' }],
  ['^a', { byte: 1, label: 'Ctrl+A' }],
  ['^?', { byte: 0x7f, label: 'Ctrl+?' }],
  ['^@', { byte: 0, label: 'Ctrl+@' }],
  ['~', { byte: 0x7e, label: '~' }],
  ['none', null],
  ['^', { byte: 0x5e, label: '^' }],
  ['', undefined],
  ['^^^', undefined],
  ['ab', undefined],
  ['é', undefined],
])('parseEscapeKey parses "%s"', (text, key) => {
  expect(parseEscapeKey(text)).toEqual(key)
})

test.each([
  ['abc', 'abc', false],
  ['\x1d', '', true],
  ['ab\x1dcd', 'ab', true],
  ['ab\x1d\x1d', 'ab', true],
  ['', '', false],
])('splitAtEscape finds the key at any position of %j', (text, before, isEscaped) => {
  expect(splitAtEscape(bytes(text), ESCAPE)).toEqual({ before: bytes(before), isEscaped })
})

test('splitAtEscape returns everything without an escape key', () => {
  expect(splitAtEscape(bytes('a\x1db'), null)).toEqual({ before: bytes('a\x1db'), isEscaped: false })
})
