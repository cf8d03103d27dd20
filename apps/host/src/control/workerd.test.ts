import { expect, test } from 'bun:test'
import { replaceDelayMs, retryDelayMs } from './workerd.ts'

test('restarts immediately after a long run, and soon after a short one', () => {
  expect(replaceDelayMs(60_000)).toBe(0)
  expect(replaceDelayMs(10)).toBe(100)
})

test('backs off after failed starts, up to a limit', () => {
  const delays = Array.from({ length: 12 }, (_, failures) => retryDelayMs(failures))
  expect(delays).toEqual(delays.toSorted((a, b) => a - b))
  expect(retryDelayMs(1_000_000)).toBe(5_000)
})
