import { expect, test } from 'bun:test'
import { hexOf, imageType, formatSize, textOf } from './file-kind.ts'

test('accepts only UTF-8 that round-trips as text', () => {
  for (const text of ['', 'a\r\nb', '\u{feff}ä🦜']) {
    const bytes = new TextEncoder().encode(text)
    expect(new TextEncoder().encode(textOf(bytes) ?? 'no')).toEqual(bytes)
  }
  expect(textOf(Uint8Array.of(0x61, 0))).toBeUndefined()
  expect(textOf(Uint8Array.of(0xe4))).toBeUndefined()
})

test('recognizes images by extension', () => {
  expect(imageType('a/b.PNG')).toBe('image/png')
  expect(imageType('png')).toBe('image/png')
  expect(imageType('a.html')).toBeUndefined()
})

test('formats sizes', () => {
  expect([0, 1023, 1024, 15_360, 5 * 1024 ** 3].map(formatSize)).toEqual([
    '0 bytes',
    '1023 bytes',
    '1.0 KiB',
    '15 KiB',
    '5.0 GiB',
  ])
})

test('formats a hex dump', () => {
  const bytes = new TextEncoder().encode('\u007fELF\u0000 twenty bytes long')
  expect(hexOf(bytes)).toBe(
    [
      '00000000  7f 45 4c 46 00 20 74 77  65 6e 74 79 20 62 79 74  .ELF. twenty byt',
      '00000010  65 73 20 6c 6f 6e 67                              es long',
    ].join('\n'),
  )
  expect(hexOf(new Uint8Array())).toBe('')
})
