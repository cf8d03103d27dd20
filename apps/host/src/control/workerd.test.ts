import { expect, test } from 'bun:test'
import { replaceDelayMs } from './workerd.ts'

test('restarts immediately after a long run, and soon after a short one', () => {
  expect(replaceDelayMs(60_000)).toBe(0)
  expect(replaceDelayMs(10)).toBe(100)
})
