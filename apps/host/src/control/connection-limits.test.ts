import { describe, expect, test } from 'bun:test'
import { findExcess, networkKey, planConnectionLimits } from './connection-limits.ts'

describe('planConnectionLimits', () => {
  test.each([256, 1_024, 20_000, 65_536, 1_048_576])(
    'leaves descriptors of %d for other uses',
    (descriptors) => {
      const { total, perAddress } = planConnectionLimits(descriptors)
      expect(2 * total).toBeLessThan(descriptors)
      expect(perAddress).toBeLessThanOrEqual(total)
      expect(perAddress).toBeGreaterThan(0)
    },
  )

  test('uses what the operator set, as far as the descriptors suffice', () => {
    expect(planConnectionLimits(20_000, { total: 100, perAddress: 7 })).toEqual({ total: 100, perAddress: 7 })
    expect(planConnectionLimits(1_024, { total: 100_000 }).total).toBeLessThan(1_024)
    expect(planConnectionLimits(20_000, { total: 10, perAddress: 50 }).perAddress).toBe(10)
  })
})

describe('findExcess', () => {
  const excess = (counts: Readonly<Record<string, number>>, total: number, perAddress: number) =>
    Object.fromEntries(findExcess(new Map(Object.entries(counts)), { total, perAddress }))

  test('closes nothing below the limits', () => {
    expect(excess({ '192.0.2.1': 10, '192.0.2.2': 5 }, 15, 10)).toEqual({})
  })

  test('limits each address', () => {
    expect(excess({ '192.0.2.1': 11, '192.0.2.2': 5 }, 100, 10)).toEqual({ '192.0.2.1': 1 })
  })

  test('leaves addresses with few connections all of them when the total is exceeded', () => {
    expect(excess({ '192.0.2.1': 900, '192.0.2.2': 500, '192.0.2.3': 3 }, 103, 1_000)).toEqual({
      '192.0.2.1': 850,
      '192.0.2.2': 450,
    })
  })

  test('limits loopback, where a proxy has all clients, by the total only', () => {
    expect(excess({ '127.0.0.1': 90, [networkKey(loopbackV6())]: 10 }, 100, 5)).toEqual({})
    expect(excess({ '127.0.0.1': 120 }, 100, 5)).toEqual({ '127.0.0.1': 20 })
  })
})

function loopbackV6(): Uint8Array {
  return Uint8Array.from({ length: 16 }, (_, index) => (index === 15 ? 1 : 0))
}

test('an IPv6 /64 counts as one network, a mapped address as IPv4', () => {
  const prefix = '20010db800000001'
  const v6 = (hex: string): string => networkKey(Uint8Array.fromHex(hex))
  expect(v6(`${prefix}0000000000000001`)).toBe(v6(`${prefix}ffffffffffffffff`))
  expect(v6(`${prefix}0000000000000001`)).not.toBe(v6(`20010db8000000020000000000000001`))
  expect(v6('00000000000000000000ffffc0000201')).toBe(networkKey(Uint8Array.of(192, 0, 2, 1)))
})
