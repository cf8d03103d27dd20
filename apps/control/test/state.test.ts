import { describe, expect, test } from 'bun:test'
import type { SandboxStatus } from '@sandwire/internal-api'
import { isAtRest, isIdle, type SandboxState, step, sleepAfter } from '../src/sandbox/state.ts'

const up: SandboxStatus = {
  id: 'x',
  state: 'running',
  address: 'slot:1',
  epoch: 'a',
  startedMs: 5,
}
const running: SandboxState = { kind: 'running', address: 'slot:1', epoch: 'a', startedMs: 5 }
const stopped: SandboxState = { kind: 'stopped' }

describe('the state of a sandbox', () => {
  test.each<SandboxState>([
    stopped,
    { kind: 'failed', reason: 'x' },
    { kind: 'creating' },
    { kind: 'stopping' },
  ])('starts from %j', (state) => {
    expect(step(state, { type: 'start' })).toEqual({
      state: { kind: 'creating' },
      effects: ['set_alarm', 'reserve', 'start'],
    })
  })

  test('does not start a running sandbox', () => {
    expect(step(running, { type: 'start' })).toEqual({ state: running, effects: [] })
  })

  test('sets the alarm while the sandbox runs and clears it when it stops', () => {
    expect(step({ kind: 'creating' }, { type: 'observed', status: up })).toEqual({
      state: running,
      effects: ['set_alarm', 'publish'],
    })
    expect(step(running, { type: 'observed', status: { id: 'x', state: 'stopped', reason: 'oom' } })).toEqual(
      {
        state: { kind: 'stopped', reason: 'oom' },
        effects: ['clear_alarm', 'publish'],
      },
    )
    expect(step(running, { type: 'observed', status: { id: 'x', state: 'absent' } }).state).toEqual(stopped)
  })

  test('publishes no unchanged state', () => {
    expect(step(running, { type: 'observed', status: up }).effects).toEqual([])
    expect(step(stopped, { type: 'observed', status: { id: 'x', state: 'stopped' } }).effects).toEqual([])
    expect(step(stopped, { type: 'stop' }).effects).toEqual([])
  })

  test('keeps the reason of a failure until the next start', () => {
    const failed = step({ kind: 'creating' }, { type: 'startFailed', reason: 'sandbox_failed' })
    expect(failed).toEqual({
      state: { kind: 'failed', reason: 'sandbox_failed' },
      effects: ['clear_alarm', 'publish'],
    })
    expect(step(failed.state, { type: 'observed', status: { id: 'x', state: 'absent' } })).toEqual({
      state: failed.state,
      effects: [],
    })
  })

  test('keeps the alarm after a start without an answer, until the provider reports the state', () => {
    const failed = step(
      { kind: 'creating' },
      { type: 'startFailed', reason: 'provider_unavailable', isUncertain: true },
    )
    expect(failed.effects).toEqual(['set_alarm', 'publish'])
    expect(isAtRest(failed.state)).toBe(false)
    expect(step(failed.state, { type: 'observed', status: up })).toEqual({
      state: running,
      effects: ['set_alarm', 'publish'],
    })
    const settled = step(failed.state, { type: 'observed', status: { id: 'x', state: 'absent' } })
    expect(settled).toEqual({
      state: { kind: 'failed', reason: 'provider_unavailable' },
      effects: ['clear_alarm'],
    })
    expect(isAtRest(settled.state)).toBe(true)
  })

  test('waits for a start of an earlier host', () => {
    const starting = { type: 'observed', status: { id: 'x', state: 'starting' } } as const
    for (const state of [stopped, { kind: 'failed', reason: 'x' } as const])
      expect(step(state, starting)).toEqual({
        state: { kind: 'creating' },
        effects: ['set_alarm', 'publish'],
      })
    expect(step({ kind: 'creating' }, starting).effects).toEqual(['set_alarm'])
  })

  test('keeps the alarm after a failed stop', () => {
    expect(step({ kind: 'stopping' }, { type: 'stopFailed' }).effects).toEqual(['set_alarm'])
  })

  test('never leaves `destroying`', () => {
    const by = { identity: 'local', name: 'owner', address: '' }
    const state: SandboxState = { kind: 'destroying', by }
    for (const before of [stopped, running, state])
      expect(step(before, { type: 'destroy', by })).toEqual({ state, effects: ['set_alarm', 'publish'] })
    for (const event of [
      { type: 'start' },
      { type: 'startFailed', reason: 'x' },
      { type: 'stop' },
      { type: 'stopFailed' },
      { type: 'observed', status: up },
      { type: 'observed', status: { id: 'x', state: 'absent' } },
    ] as const)
      expect(step(state, event)).toEqual({ state, effects: [] })
  })

  test('drops the version of a sandboxd that was replaced', () => {
    const greeted = step(running, { type: 'version_known', epoch: 'a', protocol: 1 }).state
    expect(greeted).toEqual({ ...running, protocol: 1 })
    expect(step(running, { type: 'version_known', epoch: 'older', protocol: 1 }).state).toEqual(running)
    const other = { ...up, epoch: 'b' }
    expect(step(greeted, { type: 'observed', status: other }).state).toEqual({ ...running, epoch: 'b' })
  })
})

const facts = { nowMs: 10_000, lastActivityMs: 0, sleepAfterMs: 10_000, hasPin: false }

test('a sandbox is idle after its idle time without activity', () => {
  expect(isIdle(facts)).toBe(true)
  expect(isIdle({ ...facts, lastActivityMs: 1 })).toBe(false)
})

test('a pinned session, or no idle time, keeps it running', () => {
  expect(isIdle({ ...facts, hasPin: true })).toBe(false)
  expect(isIdle({ ...facts, sleepAfterMs: null })).toBe(false)
})

test('where files do not survive a stop, it has no idle time by default', () => {
  const server = { fallbackMs: 600, maxMs: null }
  expect(sleepAfter(undefined, server, true)).toBe(600)
  expect(sleepAfter(undefined, server, false)).toBe(null)
  expect(sleepAfter(5, server, false)).toBe(5)
  expect(sleepAfter(null, server, true)).toBe(null)
})

test('its idle time never exceeds the ceiling', () => {
  const server = { fallbackMs: 600, maxMs: 100 }
  expect([undefined, 50, 500, null].map((own) => sleepAfter(own, server, true))).toEqual([100, 50, 100, 100])
  expect(sleepAfter(undefined, server, false)).toBe(100)
})

test('a refused start leaves it as it was, and reads the state from the provider if that is not known', () => {
  const refused = (before: SandboxState) => step({ kind: 'creating' }, { type: 'startRefused', before })
  const effects = ['set_alarm', 'publish'] as const
  const failed = { kind: 'failed', reason: 'sandbox_failed' } as const
  expect(refused(failed)).toEqual({ state: failed, effects })
  expect(refused({ kind: 'stopped', reason: 'idle' })).toEqual({
    state: { kind: 'stopped', reason: 'idle' },
    effects,
  })
  expect(refused({ kind: 'stopping' })).toEqual({ state: { kind: 'stopped' }, effects })
})
