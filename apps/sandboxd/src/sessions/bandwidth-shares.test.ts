import { expect, test } from 'bun:test'
import { BandwidthShares } from './bandwidth-shares.ts'

const LIMITS = { outputBytesPerSecond: 4_000 }

test('(threat T50) each account has one limit for all its connections', () => {
  const shares = new BandwidthShares(LIMITS, () => 0)
  expect(shares.of('ada')).toBe(shares.of('ada'))
  expect(shares.of('ada')).not.toBe(shares.of('bob'))
  expect(shares.of('ada')?.available(0)).toBe(1_000)
})

test('no share exists without a limit', () => {
  expect(new BandwidthShares({ outputBytesPerSecond: 0 }, () => 0).of('ada')).toBeUndefined()
})

test('the least recently used share is dropped first', () => {
  const shares = new BandwidthShares(LIMITS, () => 0)
  const [ada, bob] = [shares.of('ada'), shares.of('bob')]
  for (let index = 0; index < 999; index += 1) {
    shares.of(`${index}`)
    expect(shares.of('ada')).toBe(ada)
  }
  expect(shares.of('bob')).not.toBe(bob)
})
