import { expect, test } from 'bun:test'
import { describeLine, MAX_TEXT_BYTES } from './match-text.ts'
import type { ByteRange, FoundLine } from './rg-event.ts'

function line(bytes: Uint8Array | string, ranges: readonly ByteRange[] = []): FoundLine {
  const own = typeof bytes === 'string' ? Buffer.from(bytes) : bytes
  return { kind: 'match', path: 'x', line: 1, bytes: own, ranges, isCut: false }
}

/** What the ranges of a described line hold. */
function matched(found: FoundLine): string[] {
  const { text, ranges } = describeLine(found)
  return ranges.map(([start, end]) => text.slice(start, end))
}

test('ranges are positions in the text', () => {
  const text = 'ä🦜 hello ä hello'
  const at = Buffer.from(text).indexOf('hello')
  const second = Buffer.from(text).lastIndexOf('hello')
  const found = line(text, [
    [at, at + 5],
    [second, second + 5],
  ])
  expect(describeLine(found).text).toBe(text)
  expect(matched(found)).toEqual(['hello', 'hello'])
  expect(describeLine(found).ranges[0]).toEqual([4, 9])
})

test('bytes that are not UTF-8 are one position each', () => {
  const found = line(Uint8Array.of(0xe9, 0x20, 0x61, 0x62), [[2, 4]])
  expect(describeLine(found)).toEqual({ text: '\udce9 ab', ranges: [[2, 4]], isCut: false })
})

test('a match inside a character keeps text and ranges true', () => {
  const found = line('xäy', [[1, 2]])
  const { text, ranges } = describeLine(found)
  expect([text, ranges]).toEqual(['x\udcc3\udca4y', [[1, 2]]])
})

test('a long line is told around its first match', () => {
  const text = `${'ä'.repeat(5_000)}needle${'ö'.repeat(5_000)}needle`
  const at = Buffer.from(text).indexOf('needle')
  const second = Buffer.from(text).lastIndexOf('needle')
  const found = line(text, [
    [at, at + 6],
    [second, second + 6],
  ])
  const described = describeLine(found)
  expect(described.isCut).toBe(true)
  expect(matched(found)).toEqual(['needle'])
  expect(described.text.isWellFormed()).toBe(true)
  expect(text).toContain(described.text)
  expect(Buffer.byteLength(described.text)).toBeLessThanOrEqual(MAX_TEXT_BYTES)
})

test('a match that is longer than the text goes up to its end', () => {
  const found = line('x'.repeat(10_000), [[0, 10_000]])
  expect(describeLine(found).ranges).toEqual([[0, MAX_TEXT_BYTES]])
})

test('bytes that are no characters are cut like any others', () => {
  const described = describeLine(line(new Uint8Array(10_000).fill(0x80)))
  expect(described.text).toHaveLength(MAX_TEXT_BYTES)
})

test('an empty match is a range of nothing', () => {
  expect(describeLine(line('', [[0, 0]]))).toEqual({ text: '', ranges: [[0, 0]], isCut: false })
})
