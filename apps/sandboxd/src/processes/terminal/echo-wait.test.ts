import { beforeEach, describe, expect, test } from 'bun:test'
import { EchoWait, EchoHistory } from './echo-wait.ts'

const FD = 7

/** A clock advanced by waiting: each yield takes 10 µs, each sleep its whole time. */
let nowMs = 0
let yieldTakesMs = 0.01
let sleeps: number[] = []
let wait: EchoWait
let history: EchoHistory

beforeEach(() => {
  nowMs = 0
  yieldTakesMs = 0.01
  sleeps = []
  history = new EchoHistory()
  wait = new EchoWait({
    now: () => nowMs,
    yieldProcessor: () => {
      nowMs += yieldTakesMs
    },
    sleepFor: (_, ms) => {
      sleeps.push(ms)
      nowMs += ms
    },
  })
})

/** One keystroke in a turn of its own; true when its echo was waited for. */
function key(isEchoed: boolean): boolean {
  const isWaited = wait.begin(history)
  if (isWaited) wait.await(history, FD, () => isEchoed)
  wait.endTurn()
  return isWaited
}

describe('EchoWait', () => {
  test('ends with the echo', () => {
    let polls = 0
    wait.begin(history)
    wait.await(history, FD, () => (polls += 1) === 3)
    expect({ polls, sleeps }).toEqual({ polls: 3, sleeps: [] })
  })

  test('sleeps once after 60 µs, polls again, and gives up after 210 µs', () => {
    let polls = 0
    wait.begin(history)
    wait.await(history, FD, () => {
      polls += 1
      return false
    })
    expect(sleeps).toEqual([0.15])
    expect(nowMs).toBeCloseTo(0.21, 1)
    expect(polls).toBeGreaterThan(6)
  })

  test('waits once per turn, for all terminals together', () => {
    expect(wait.begin(history)).toBe(true)
    expect(wait.begin(new EchoHistory())).toBe(false)
    wait.endTurn()
    expect(wait.begin(new EchoHistory())).toBe(true)
  })

  test('stops waiting after a wait that took too long, for longer each time', () => {
    yieldTakesMs = 3
    for (const pauseMs of [25, 100, 400, 1_600, 5_000, 5_000]) {
      expect(key(true)).toBe(true)
      nowMs += pauseMs - 1
      expect(key(true)).toBe(false)
      nowMs += 1
    }
  })

  test('resumes waiting sooner after waits that were short', () => {
    yieldTakesMs = 3
    expect(key(true)).toBe(true)
    nowMs += 25
    yieldTakesMs = 0.01
    expect([key(true), key(true)]).toEqual([true, true])
    yieldTakesMs = 3
    expect(key(true)).toBe(true)
    nowMs += 25
    expect(key(true)).toBe(true)
  })

  test('skips twice as many keystrokes after each late echo, up to 64, and none after a timely one', () => {
    const skipped: number[] = []
    for (let round = 0; round < 9; round += 1) {
      expect(key(false)).toBe(true)
      let count = 0
      while (!history.shouldWait()) count += 1
      skipped.push(count)
    }
    expect(skipped).toEqual([1, 2, 4, 8, 16, 32, 64, 64, 64])
    expect(key(true)).toBe(true)
    expect(key(true)).toBe(true)
  })
})
