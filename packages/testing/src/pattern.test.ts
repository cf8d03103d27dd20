import { describe, expect, test } from 'bun:test'
import { patternAt, verifyPattern } from './pattern.ts'
import { Random } from './random.ts'

describe('patternAt', () => {
  test('returns the same bytes for any window of the stream', () => {
    const whole = patternAt(9, 0, 40_000)
    const random = new Random(1)
    for (let round = 0; round < 200; round++) {
      const offset = random.int(0, 30_000)
      const length = random.int(0, 9_000)
      expect(patternAt(9, offset, length)).toEqual(whole.slice(offset, offset + length))
    }
  })

  test('does not repeat within a stream or between seeds', () => {
    const words = new Set<number>()
    for (const seed of [0, 1, 2]) {
      for (const offset of [0, 2 ** 31, 2 ** 32, 2 ** 44, 2 ** 45, 2 ** 52]) {
        for (const word of new Uint32Array(patternAt(seed, offset, 64).buffer)) words.add(word)
      }
    }
    expect(words.size).toBe(3 * 6 * 16)
  })
})

describe('verifyPattern', () => {
  test('accepts the pattern itself', () => {
    expect(verifyPattern(3, 12_345, patternAt(3, 12_345, 70_000))).toBeUndefined()
    expect(verifyPattern(3, 5, new Uint8Array(0))).toBeUndefined()
  })

  test('reports the stream offset of the first wrong byte', () => {
    const bytes = patternAt(3, 1_000_001, 20_000)
    const expected = bytes[15_000] ?? 0
    bytes[15_000] = expected ^ 1
    bytes[19_000] = (bytes[19_000] ?? 0) ^ 1
    expect(verifyPattern(3, 1_000_001, bytes)).toEqual({ offset: 1_015_001, expected, actual: expected ^ 1 })
  })

  test('detects a lost, a duplicated and a moved byte', () => {
    const bytes = patternAt(4, 0, 10_000)
    expect(
      verifyPattern(4, 0, Buffer.concat([bytes.subarray(0, 5_000), bytes.subarray(5_001)])),
    ).toBeDefined()
    expect(
      verifyPattern(4, 0, Buffer.concat([bytes.subarray(0, 5_000), bytes.subarray(4_999)])),
    ).toBeDefined()
    expect(verifyPattern(4, 4_096, bytes)).toBeDefined()
  })
})
