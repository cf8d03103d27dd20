import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { TokenBucket } from './token-bucket.ts'

describe('TokenBucket', () => {
  test('[B2] allows its burst, then its rate', () => {
    const bucket = new TokenBucket(10, 20, 0)
    let taken = 0
    while (bucket.take(1, 0)) taken += 1
    expect(taken).toBe(20)
    expect(bucket.take(1, 99)).toBe(false)
    expect(bucket.take(1, 100)).toBe(true)
    expect(bucket.take(1, 100)).toBe(false)
  })

  test('[B2] holds no more than its burst', () => {
    expect(new TokenBucket(10, 20, 0).available(1_000_000)).toBe(20)
  })

  test('[W9] returns how long to wait', () => {
    const bucket = new TokenBucket(100, 50, 0)
    expect(bucket.waitMs(1, 0)).toBe(0)
    bucket.take(50, 0)
    expect(bucket.waitMs(1, 0)).toBe(10)
    expect(bucket.waitMs(1, 4)).toBe(6)
    expect(bucket.waitMs(1_000, 4)).toBe(496)
  })

  test('[B2] takes all tokens or none, and is unaffected by a clock that is set back', () => {
    const bucket = new TokenBucket(10, 20, 1_000)
    expect(bucket.take(21, 1_000)).toBe(false)
    expect(bucket.take(20, 1_000)).toBe(true)
    expect(bucket.take(1, 0)).toBe(false)
    expect(bucket.take(1, 99)).toBe(false)
    expect(bucket.take(1, 100)).toBe(true)
  })

  test('[B2] never allows more than burst and rate', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ ms: fc.nat(500), count: fc.integer({ min: 1, max: 30 }) }), { maxLength: 200 }),
        (steps) => {
          const bucket = new TokenBucket(100, 40, 0)
          let [nowMs, taken] = [0, 0]
          for (const { ms, count } of steps) {
            nowMs += ms
            if (bucket.take(count, nowMs)) taken += count
            expect(taken).toBeLessThanOrEqual(40 + nowMs / 10 + 1e-6)
          }
        },
      ),
    )
  })
})
