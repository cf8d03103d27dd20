import { describe, expect, test } from 'bun:test'
import { LineAccumulator, Pan, decaySpeed } from './touch-scroll.ts'

const at = (x: number, y: number, atMs: number) => ({ x, y, atMs })

describe('Pan', () => {
  test('is a tap within the slop, then follows the whole movement', () => {
    const pan = new Pan(at(0, 100, 0))
    expect(pan.moveTo(at(3, 105, 10))).toBe(0)
    expect(pan.isUpright).toBe(false)
    expect(pan.moveTo(at(3, 110, 20))).toBe(10)
    expect(pan.moveTo(at(50, 90, 30))).toBe(-20)
    expect(pan.isUpright).toBe(true)
  })
  test('that starts sideways stays sideways', () => {
    const pan = new Pan(at(0, 0, 0))
    pan.moveTo(at(20, 5, 10))
    expect(pan.moveTo(at(20, 200, 20))).toBe(0)
    expect(pan.speedAt(20)).toBe(0)
  })
  test('ends with its recent speed, or none after a stop', () => {
    const pan = new Pan(at(0, 0, 0))
    pan.moveTo(at(0, 500, 900))
    pan.moveTo(at(0, 520, 920))
    expect(pan.speedAt(930)).toBe(1)
    expect(pan.speedAt(2_000)).toBe(0)
  })
})

test('a glide comes to an end', () => {
  expect(decaySpeed(1, 0)).toBe(1)
  expect(decaySpeed(-1, 100)).toBeLessThan(0)
  expect(Math.abs(decaySpeed(-1, 3_000))).toBeLessThan(0.001)
})

test('converts pixels to lines without losing any', () => {
  const count = new LineAccumulator()
  expect([7, 7, 7, -1, -30].map((pixels) => count.take(pixels, 10))).toEqual([0, 1, 1, 0, -3])
  expect(count.take(0, 10)).toBe(0)
})
