import { expect, test } from 'bun:test'
import { isIdle, sleepAfter } from '../src/sandbox/idle.ts'

const facts = { nowMs: 10_000, lastActivityMs: 0, sleepAfterMs: 10_000, hasPin: false }

test('a sandbox is idle when nothing moved for as long as it was told', () => {
  expect(isIdle(facts)).toBe(true)
  expect(isIdle({ ...facts, lastActivityMs: 1 })).toBe(false)
})

test('a pinned session or no time to sleep keeps it awake', () => {
  expect(isIdle({ ...facts, hasPin: true })).toBe(false)
  expect(isIdle({ ...facts, sleepAfterMs: null })).toBe(false)
})

test('where files do not survive, it does not sleep unless it was told to', () => {
  expect(sleepAfter(undefined, 600, true)).toBe(600)
  expect(sleepAfter(undefined, 600, false)).toBe(null)
  expect(sleepAfter(5, 600, false)).toBe(5)
  expect(sleepAfter(null, 600, true)).toBe(null)
})
