import { expect, test } from 'bun:test'
import { replaceDelayMs, retryDelayMs } from './workerd.ts'

test('a death after sound service is answered at once, one after a moment of it soon', () => {
  expect(replaceDelayMs(60_000)).toBe(0)
  expect(replaceDelayMs(10)).toBe(100)
})

test('starts that fail are tried again ever later, up to a bound', () => {
  const delays = Array.from({ length: 12 }, (_, failures) => retryDelayMs(failures))
  expect(delays).toEqual(delays.toSorted((a, b) => a - b))
  expect(retryDelayMs(1_000_000)).toBe(5_000)
})
