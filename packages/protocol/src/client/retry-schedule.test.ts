import { describe, expect, test } from 'bun:test'
import { RetrySchedule } from './retry-schedule.ts'

describe('Reconnection', () => {
  const options = { connectForMs: 1_000, retryForMs: 5_000, backOff: { firstMs: 100, maxMs: 400 } }

  test('[R11] counts its time before the first welcome from the start', () => {
    const reconnection = new RetrySchedule(options)
    reconnection.start(0)
    expect(reconnection.fail(false, 0, 900)).toBe(950)
    expect(reconnection.fail(false, 0, 950)).toBeUndefined()
  })

  test('[R11] counts its time after a welcome from the cut', () => {
    const reconnection = new RetrySchedule(options)
    reconnection.start(0)
    reconnection.begin(0)
    reconnection.succeed()
    expect(reconnection.fail(true, 0, 100_000)).toBe(100_050)
    expect(reconnection.fail(true, 0, 104_000)).toBe(104_100)
    expect(reconnection.fail(true, 0, 104_950)).toBeUndefined()
  })

  test('[R10] begins with short waits again after a welcome', () => {
    const reconnection = new RetrySchedule(options)
    for (let times = 0; times < 5; times += 1) reconnection.fail(true, 0, 0)
    expect(reconnection.failures).toBe(5)
    reconnection.succeed()
    expect(reconnection.fail(true, 1, 10)).toBe(110)
  })

  test('[R12] gives each attempt a number and 15 s', () => {
    const reconnection = new RetrySchedule(options)
    expect([reconnection.begin(0), reconnection.begin(10)]).toEqual([1, 2])
    expect(reconnection.deadlineMs).toBe(15_010)
    reconnection.stop()
    expect(reconnection.deadlineMs).toBeUndefined()
  })

  test('[R12] gives an attempt after a cut no longer than there is time to come back, and 2 s at least', () => {
    const reconnection = new RetrySchedule(options)
    reconnection.start(0)
    reconnection.begin(0)
    reconnection.succeed()
    const againMs = reconnection.fail(true, 0, 1_000) ?? Number.NaN
    reconnection.begin(againMs)
    expect(reconnection.deadlineMs).toBe(6_000)
    reconnection.succeed()
    reconnection.fail(true, 0, 50_000)
    reconnection.begin(50_050)
    expect(reconnection.deadlineMs).toBe(55_000)
    reconnection.begin(90_000)
    expect(reconnection.deadlineMs).toBe(92_000)
  })
})
