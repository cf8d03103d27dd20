import { expect, test } from 'bun:test'
import { pathToBytes, decodePath, encodePath, pathFromBytes } from './path-text.ts'

const NAMES: readonly (readonly [string, Uint8Array])[] = [
  ['plain', Buffer.from('src/index.ts')],
  ['spaces, newlines and dashes', Buffer.from('-rf \n a+b%20&=#')],
  ['emoji', Buffer.from('🦜/ä')],
  ['a replacement character of its own', Buffer.from('\u{fffd}')],
  ['a byte order mark', Buffer.from('\u{feff}x')],
  ['Latin-1', Uint8Array.of(0x61, 0xe4, 0x62)],
  ['half of a sequence', Uint8Array.of(0xf0, 0x9f, 0xa6)],
  ['an overlong slash', Uint8Array.of(0xc0, 0xaf)],
  ['a surrogate in UTF-8', Uint8Array.of(0xed, 0xb2, 0x80)],
  ['every byte but none and the slash', Uint8Array.from({ length: 255 }, (_, at) => at + 1)],
]

test.each([...NAMES])('a name round-trips as text and in a query: %s', (_, bytes) => {
  const text = pathFromBytes(bytes)
  expect(pathToBytes(text)).toEqual(new Uint8Array(bytes))
  expect(pathToBytes(JSON.parse(JSON.stringify(text)))).toEqual(new Uint8Array(bytes))
  expect(decodePath(encodePath(text) ?? '')).toBe(text)
  expect(encodePath(text)).toMatch(/^[\x21-\x7e]+$/)
})

test('names that differ in bytes differ in text', () => {
  const texts = Array.from({ length: 256 * 256 }, (_, at) => pathFromBytes(Uint8Array.of(at >> 8, at & 0xff)))
  expect(new Set(texts).size).toBe(256 * 256)
})

test('a path with a surrogate that encodes no byte is refused', () => {
  for (const text of ['\u{d800}', 'a\u{dc7f}', '\u{dfff}']) {
    expect(pathToBytes(text)).toBeUndefined()
    expect(encodePath(text)).toBeUndefined()
  }
})

test('a path with invalid percent-encoding is refused', () => {
  for (const text of ['%', '%4', '%zz', 'a%2']) expect(decodePath(text)).toBeUndefined()
  expect(decodePath('a+b%2Bc')).toBe('a b+c')
})
