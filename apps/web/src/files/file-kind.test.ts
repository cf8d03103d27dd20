import { expect, test } from 'bun:test'
import { imageType, sizeText, textOf } from './file-kind.ts'

test('text is what comes back byte for byte', () => {
  for (const text of ['', 'a\r\nb', '\u{feff}ä🦜']) {
    const bytes = new TextEncoder().encode(text)
    expect(new TextEncoder().encode(textOf(bytes) ?? 'no')).toEqual(bytes)
  }
  expect(textOf(Uint8Array.of(0x61, 0))).toBeUndefined()
  expect(textOf(Uint8Array.of(0xe4))).toBeUndefined()
})

test('pictures are told by their names', () => {
  expect(imageType('a/b.PNG')).toBe('image/png')
  expect(imageType('png')).toBe('image/png')
  expect(imageType('a.html')).toBeUndefined()
})

test('sizes are short', () => {
  expect([0, 1023, 1024, 15_360, 5 * 1024 ** 3].map(sizeText)).toEqual([
    '0 bytes',
    '1023 bytes',
    '1.0 KiB',
    '15 KiB',
    '5.0 GiB',
  ])
})
