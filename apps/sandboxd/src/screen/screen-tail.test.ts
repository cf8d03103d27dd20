import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { UnfinishedTail } from './screen-tail.ts'

const encoder = new TextEncoder()

function tailOf(parts: Iterable<Uint8Array>): string {
  const tail = new UnfinishedTail()
  for (const part of parts) tail.scan(part)
  return Buffer.from(tail.bytes).toString('latin1')
}

test.each([
  ['text', ''],
  ['a title \u001b]0;half', '\u001b]0;half'],
  ['a title \u001b]0;whole\u0007', ''],
  ['a color \u001b[31', '\u001b[31'],
  ['a color \u001b[31m and text', ''],
  ['an escape \u001b', '\u001b'],
  ['text before \u001b[31m color \u001b[0', '\u001b[0'],
])('%j breaks off in %j', (output, expected) => {
  expect(tailOf([encoder.encode(output)])).toBe(expected)
})

test('holds an incomplete character of any length', () => {
  const smile = [...encoder.encode('😀')]
  for (let length = 1; length < smile.length; length += 1) {
    const output = Uint8Array.from([...encoder.encode('many words, '), ...smile.slice(0, length)])
    expect(tailOf([output])).toBe(Buffer.from(smile.slice(0, length)).toString('latin1'))
  }
})

const piece = fc.constantFrom(
  ...['a', 'é', '漢', '😀', '\u001b', '[', ']', '0;', 'm', '\u0007', '\u0018', 'P', '\\', '\n'].map((text) =>
    encoder.encode(text),
  ),
)
const fragment = fc.oneof(
  piece,
  fc.uint8Array({ minLength: 1, maxLength: 2 }),
  fc.tuple(piece, fc.nat(3)).map(([bytes, length]) => bytes.subarray(0, length)),
)

test('holds the same tail whether output comes whole or byte by byte', () => {
  fc.assert(
    fc.property(fc.array(fragment, { maxLength: 30 }), (fragments) => {
      const output = Uint8Array.from(fragments.flatMap((bytes) => [...bytes]))
      const singles = Array.from(output, (byte) => Uint8Array.of(byte))
      expect(tailOf([output])).toBe(tailOf(singles))
    }),
    { numRuns: 5_000 },
  )
})
