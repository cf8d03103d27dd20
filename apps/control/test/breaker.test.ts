import { describe, expect, test } from 'bun:test'
import { Breaker, FAILURES_TO_OPEN, OPEN_MS } from '../src/providers/breaker.ts'

function opened(): Breaker {
  const breaker = new Breaker()
  for (let count = 0; count < FAILURES_TO_OPEN; count++) breaker.failed(0)
  return breaker
}

describe('a breaker', () => {
  test('opens after a number of consecutive failures', () => {
    const breaker = new Breaker()
    for (let count = 1; count < FAILURES_TO_OPEN; count++) breaker.failed(0)
    expect(breaker.admit(0)).toBe(true)
    breaker.succeeded()
    for (let count = 1; count < FAILURES_TO_OPEN; count++) breaker.failed(0)
    expect(breaker.admit(0)).toBe(true)
    breaker.failed(0)
    expect(breaker.admit(OPEN_MS - 1)).toBe(false)
  })

  test('allows one trial call after its delay', () => {
    const breaker = opened()
    expect(breaker.admit(OPEN_MS)).toBe(true)
    expect(breaker.state.kind).toBe('half-open')
    expect(breaker.admit(OPEN_MS)).toBe(false)
  })

  test('closes when the trial succeeds and reopens when it fails', () => {
    const good = opened()
    good.admit(OPEN_MS)
    good.succeeded()
    expect(good.state).toEqual({ kind: 'closed', failures: 0 })
    const bad = opened()
    bad.admit(OPEN_MS)
    bad.failed(OPEN_MS)
    expect(bad.state).toEqual({ kind: 'open', untilMs: 2 * OPEN_MS })
  })

  test('allows another trial when the outcome of one is never reported', () => {
    const breaker = opened()
    breaker.admit(OPEN_MS)
    expect(breaker.admit(2 * OPEN_MS)).toBe(true)
  })
})
