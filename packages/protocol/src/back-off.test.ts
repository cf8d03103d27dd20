import { expect, test } from 'bun:test'
import { backOffMs, DEFAULT_BACK_OFF } from './back-off.ts'

test('[R10] doubles from 100 ms to 10 s', () => {
  const most = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((attempt) => backOffMs(attempt, 1))
  expect(most).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000])
})

test('[R10] is random over half its span', () => {
  expect(backOffMs(1, 0)).toBe(50)
  expect(backOffMs(4, 0.5)).toBe(600)
  expect(backOffMs(4, 0)).toBe(400)
})

test('[R10] stays within its bounds after a thousand attempts', () => {
  for (let attempt = 1; attempt < 1_000; attempt += 1) {
    expect(backOffMs(attempt, 0)).toBeGreaterThanOrEqual(DEFAULT_BACK_OFF.firstMs / 2)
    expect(backOffMs(attempt, 0.999)).toBeLessThanOrEqual(DEFAULT_BACK_OFF.maxMs)
  }
})
