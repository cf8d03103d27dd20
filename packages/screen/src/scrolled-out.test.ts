import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { countTextLines } from './scrolled-out.ts'

/** Bytes that are not text: control characters other than line ends and tabs, and the first UTF-8 byte of C1 controls. */
function isMoreThanText(byte: number): boolean {
  return (byte < 0x20 && ![0x09, 0x0a, 0x0d].includes(byte)) || byte === 0x7f || byte === 0xc2
}

function countOneByOne(bytes: Uint8Array): number | undefined {
  if (bytes.some(isMoreThanText)) return undefined
  return bytes.filter((byte, at) => byte === 0x0a && bytes[at - 1] === 0x0d).byteLength
}

const text = fc.constantFrom(0x20, 0x41, 0x7e, 0x09, 0x80, 0xc3, 0xff)
const lineEnd = fc.constantFrom(0x0a, 0x0d)
const other = fc.constantFrom(0x00, 0x1b, 0x1f, 0x7f, 0xc2)
const bytes = fc.oneof(
  fc.array(fc.oneof({ weight: 4, arbitrary: text }, lineEnd), { maxLength: 40 }),
  fc.array(fc.oneof({ weight: 40, arbitrary: text }, { weight: 10, arbitrary: lineEnd }, other), {
    maxLength: 40,
  }),
)

test('counts lines like a byte-by-byte count, at any memory alignment', () => {
  fc.assert(
    fc.property(bytes, fc.nat(4), (content, offset) => {
      const placed = new Uint8Array([...Array<number>(offset).fill(0x1b), ...content]).subarray(offset)
      expect(countTextLines(placed)).toBe(countOneByOne(placed))
    }),
    { numRuns: 3_000 },
  )
})

test('classifies each byte alike at every position within a word', () => {
  for (let byte = 0; byte < 256; byte += 1) {
    for (let at = 0; at < 8; at += 1) {
      const placed = new Uint8Array(8).fill(0x61)
      placed[at] = byte
      expect(countTextLines(placed)).toBe(countOneByOne(placed))
    }
  }
})
