import { expect, test } from 'bun:test'
import { DrainClock } from './drain-timer.ts'

const clockWith = () => new DrainClock({ drainMs: 2_000, drainBytes: 100 })

test('a drain clock expires after the idle time', () => {
  const clock = clockWith()
  clock.restart(1_000)
  expect(clock.remainingMs(2_500)).toBe(500)
  expect(clock.remainingMs(3_000)).toBe(0)
})

test('a drain clock restarts with each chunk', () => {
  const clock = clockWith()
  clock.restart(0)
  clock.chunk(1, 1_500)
  expect(clock.remainingMs(2_000)).toBe(1_500)
})

test('a drain clock does not run while stopped', () => {
  const clock = clockWith()
  clock.restart(0)
  clock.stop()
  clock.chunk(1, 500)
  expect(clock.remainingMs(9_000)).toBeUndefined()
  clock.restart(9_000)
  expect(clock.remainingMs(9_000)).toBe(2_000)
})

test('a drain clock limits the bytes after the exit', () => {
  const clock = clockWith()
  clock.chunk(99, 0)
  expect(clock.isOverBytes).toBe(false)
  clock.chunk(1, 0)
  expect(clock.isOverBytes).toBe(true)
})
