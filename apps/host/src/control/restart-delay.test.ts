import { expect, test } from 'bun:test'
import { restartDelayMs } from './restart-delay.ts'

test('the first death is answered at once, repeated ones ever later, up to a bound', () => {
  const delays = Array.from({ length: 12 }, (_, failures) => restartDelayMs(failures))
  expect(delays[0]).toBe(0)
  expect(delays).toEqual(delays.toSorted((a, b) => a - b))
  expect(restartDelayMs(1_000_000)).toBe(5_000)
})
