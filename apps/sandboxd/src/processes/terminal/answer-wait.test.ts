import { beforeEach, describe, expect, test } from 'bun:test'
import { AnswerWait, Attention } from './answer-wait.ts'

const FD = 7

/** A clock that waiting moves: each yield takes 10 µs, a sleep as long as it may. */
let nowMs = 0
let yieldTakesMs = 0.01
let sleeps: number[] = []
let wait: AnswerWait
let attention: Attention

beforeEach(() => {
  nowMs = 0
  yieldTakesMs = 0.01
  sleeps = []
  attention = new Attention()
  wait = new AnswerWait({
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

/** One key in a turn of its own; true when its answer was waited for. */
function key(isAnswered: boolean): boolean {
  const isWaited = wait.begin(attention)
  if (isWaited) wait.await(attention, FD, () => isAnswered)
  wait.endTurn()
  return isWaited
}

describe('the wait for an answer', () => {
  test('ends with the answer', () => {
    let looks = 0
    wait.begin(attention)
    wait.await(attention, FD, () => (looks += 1) === 3)
    expect({ looks, sleeps }).toEqual({ looks: 3, sleeps: [] })
  })

  test('sleeps once after 60 µs, looks again, and is over after 210 µs', () => {
    let looks = 0
    wait.begin(attention)
    wait.await(attention, FD, () => {
      looks += 1
      return false
    })
    expect(sleeps).toEqual([0.15])
    expect(nowMs).toBeCloseTo(0.21, 1)
    expect(looks).toBeGreaterThan(6)
  })

  test('happens once per turn, whoever types', () => {
    expect(wait.begin(attention)).toBe(true)
    expect(wait.begin(new Attention())).toBe(false)
    wait.endTurn()
    expect(wait.begin(new Attention())).toBe(true)
  })

  test('is left out for a while when it took longer than it should, and for ever longer', () => {
    yieldTakesMs = 3
    for (const pauseMs of [25, 100, 400, 1_600, 5_000, 5_000]) {
      expect(key(true)).toBe(true)
      nowMs += pauseMs - 1
      expect(key(true)).toBe(false)
      nowMs += 1
    }
  })

  test('is left out for less after waits that were as short as they should be', () => {
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

  test('passes over ever more keys of a terminal that does not answer, 64 at most, and none once it does', () => {
    const passed: number[] = []
    for (let round = 0; round < 9; round += 1) {
      expect(key(false)).toBe(true)
      let count = 0
      while (!attention.next()) count += 1
      passed.push(count)
    }
    expect(passed).toEqual([1, 2, 4, 8, 16, 32, 64, 64, 64])
    expect(key(true)).toBe(true)
    expect(key(true)).toBe(true)
  })
})
