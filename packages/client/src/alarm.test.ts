import { describe, expect, spyOn, test } from 'bun:test'
import { Alarm } from './alarm.ts'

/** How long the timer waits that the alarm sets for a time. */
function delayUntil(atMs: number): number | undefined {
  using timers = spyOn(globalThis, 'setTimeout')
  const alarm = new Alarm(() => {})
  alarm.set(atMs, 1_000)
  alarm.set(undefined, 1_000)
  return timers.mock.calls[0]?.[1]
}

describe('Alarm', () => {
  test('does not fire early for a time beyond the longest timer', () => {
    expect(delayUntil(1_250.5)).toBe(251)
    expect(delayUntil(2 ** 40)).toBe(2 ** 31 - 1)
    expect(delayUntil(Number.POSITIVE_INFINITY)).toBe(2 ** 31 - 1)
  })
})
