import { describe, expect, test } from 'bun:test'
import { Random } from './random.ts'

describe('Random', () => {
  test('produces the same sequence for the same seed, and another for the next seed', () => {
    const draw = (seed: number) =>
      Array.from(
        { length: 100 },
        (
          (random) => () =>
            random.word()
        )(new Random(seed)),
      )
    expect(draw(7)).toEqual(draw(7))
    expect(new Set([...draw(7), ...draw(8)]).size).toBeGreaterThan(195)
  })

  test('keeps its golden values, so that recorded seeds stay valid', () => {
    const random = new Random(1)
    expect([random.word(), random.word(), random.word()]).toEqual([
      2_420_951_833, 2_513_034_076, 3_847_892_949,
    ])
  })

  test('draws every integer of a range about equally often', () => {
    const random = new Random(2)
    const counts = new Map<number, number>()
    for (let i = 0; i < 60_000; i++) {
      const value = random.int(-2, 3)
      counts.set(value, (counts.get(value) ?? 0) + 1)
    }
    expect([...counts.keys()].toSorted((a, b) => a - b)).toEqual([-2, -1, 0, 1, 2, 3])
    for (const count of counts.values()) expect(Math.abs(count - 10_000)).toBeLessThan(500)
  })

  test('refuses an empty range and an empty list', () => {
    expect(() => new Random(1).int(2, 1)).toThrow(RangeError)
    expect(() => new Random(1).pick([])).toThrow(RangeError)
  })

  test('returns true from chance(p) with frequency p', () => {
    const random = new Random(3)
    let hits = 0
    for (let i = 0; i < 20_000; i++) if (random.chance(0.25)) hits++
    expect(Math.abs(hits / 20_000 - 0.25)).toBeLessThan(0.02)
    expect(random.chance(0)).toBe(false)
    expect(random.chance(1)).toBe(true)
  })

  test('fills bytes of any length with every value', () => {
    const random = new Random(4)
    for (const length of [0, 1, 3, 4, 5, 17]) expect(random.bytes(length)).toHaveLength(length)
    expect(new Set(random.bytes(20_000)).size).toBe(256)
  })

  test('shuffles without losing or duplicating an element', () => {
    const list = Array.from({ length: 50 }, (_, index) => index)
    const shuffled = new Random(5).shuffle(list)
    expect(shuffled).not.toEqual(list)
    expect(shuffled.toSorted((a, b) => a - b)).toEqual(list)
  })

  test('is unaffected by draws from its fork', () => {
    const [left, right] = [new Random(6), new Random(6)]
    left.fork().bytes(1_000)
    right.fork()
    expect(left.word()).toBe(right.word())
  })
})
