import { describe, expect, test } from 'bun:test'
import type { SandboxStatus } from '@sandwire/internal-api'
import { type SandboxState, step } from '../src/sandbox/state.ts'

const up: SandboxStatus = {
  id: 'x',
  state: 'running',
  address: 'slot:1',
  epoch: 'a',
  startedMs: 5,
}
const running: SandboxState = { is: 'running', address: 'slot:1', epoch: 'a', startedMs: 5 }
const stopped: SandboxState = { is: 'stopped' }

describe('the state of a sandbox', () => {
  test.each<SandboxState>([stopped, { is: 'failed', reason: 'x' }, { is: 'creating' }, { is: 'stopping' }])(
    'starts from %j',
    (state) => {
      expect(step(state, { type: 'start' })).toEqual({
        state: { is: 'creating' },
        effects: ['watch', 'publish', 'start'],
      })
    },
  )

  test('starts nothing that runs', () => {
    expect(step(running, { type: 'start' })).toEqual({ state: running, effects: [] })
  })

  test('watches what runs and rests when it does not', () => {
    expect(step({ is: 'creating' }, { type: 'observed', status: up })).toEqual({
      state: running,
      effects: ['watch', 'publish'],
    })
    expect(step(running, { type: 'observed', status: { id: 'x', state: 'stopped', reason: 'oom' } })).toEqual(
      {
        state: { is: 'stopped', reason: 'oom' },
        effects: ['rest', 'publish'],
      },
    )
    expect(step(running, { type: 'observed', status: { id: 'x', state: 'absent' } }).state).toEqual(stopped)
  })

  test('says nothing twice', () => {
    expect(step(running, { type: 'observed', status: up }).effects).toEqual([])
    expect(step(stopped, { type: 'observed', status: { id: 'x', state: 'stopped' } }).effects).toEqual([])
    expect(step(stopped, { type: 'stop' }).effects).toEqual([])
  })

  test('keeps why it failed until it is started again', () => {
    const failed = step({ is: 'creating' }, { type: 'startFailed', reason: 'sandbox_failed' })
    expect(failed).toEqual({
      state: { is: 'failed', reason: 'sandbox_failed' },
      effects: ['rest', 'publish'],
    })
    expect(step(failed.state, { type: 'observed', status: { id: 'x', state: 'absent' } })).toEqual({
      state: failed.state,
      effects: [],
    })
  })

  test('keeps looking after a stop that did not work', () => {
    expect(step({ is: 'stopping' }, { type: 'stopFailed' }).effects).toEqual(['watch'])
  })

  test('forgets the version of a sandboxd that was replaced', () => {
    const greeted = step(running, { type: 'greeted', epoch: 'a', protocol: 1 }).state
    expect(greeted).toEqual({ ...running, protocol: 1 })
    expect(step(running, { type: 'greeted', epoch: 'older', protocol: 1 }).state).toEqual(running)
    const other = { ...up, epoch: 'b' }
    expect(step(greeted, { type: 'observed', status: other }).state).toEqual({ ...running, epoch: 'b' })
  })
})
