import { expect, test } from 'bun:test'
import { concatBytes, fromBase64Url, toBase64Url, toHex } from './index.ts'

test('concatBytes joins chunks in order', () => {
  expect(concatBytes([Uint8Array.of(1), Uint8Array.of(), Uint8Array.of(2, 3)])).toEqual(
    Uint8Array.of(1, 2, 3),
  )
  expect(concatBytes([])).toEqual(new Uint8Array(0))
})

test('toHex keeps leading zeros', () => {
  expect(toHex(Uint8Array.of(0, 10, 255))).toBe('000aff')
})

test('base64url encodes without padding and decodes what it encodes', () => {
  const bytes = Uint8Array.of(0xfb, 0xff, 0xfe, 0)
  expect(toBase64Url(bytes)).toBe('-__-AA')
  expect(fromBase64Url('-__-AA')).toEqual(bytes)
})

test.each(['-__-AB', '-__-AA==', '+//+AA', 'a', 'ä'])('fromBase64Url refuses %p', (text) => {
  expect(fromBase64Url(text)).toBeUndefined()
})
