import { expect, test } from 'bun:test'
import { Random } from '@sandwire/testing'
import { isActive, isSteerable, type RunInput, type RunState, step } from '../src/run/state.ts'

function walk(inputs: readonly RunInput[], from: RunState = { kind: 'queued' }): RunState {
  return inputs.reduce(step, from)
}
const observed = (agent: Extract<RunInput, { type: 'observed' }>['agent']): RunInput => ({
  type: 'observed',
  agent,
  reason: null,
  message: null,
})
const STARTED: readonly RunInput[] = [
  { type: 'admitted' },
  { type: 'prepared', step: 'sandbox' },
  { type: 'prepared', step: 'clone' },
  observed('turn'),
]
const ABORT: RunInput = { type: 'stop', why: 'aborted', message: 'x' }

test('a run is prepared, works, waits for approvals, is collected and ends', () => {
  expect(walk(STARTED)).toEqual({ kind: 'running' })
  expect(walk([...STARTED, observed('awaiting')])).toEqual({ kind: 'awaiting' })
  expect(walk([...STARTED, observed('awaiting'), observed('turn')])).toEqual({ kind: 'running' })
  const collecting = walk([...STARTED, observed('ended')])
  expect(collecting).toEqual({ kind: 'collecting' })
  expect(step(collecting, { type: 'collected', outcome: 'completed', nowMs: 5 })).toEqual({
    kind: 'ended',
    outcome: 'completed',
    endedMs: 5,
  })
})

test('a run without room waits again', () => {
  expect(walk([{ type: 'admitted' }, { type: 'no_room' }])).toEqual({ kind: 'queued' })
  expect(walk([...STARTED, { type: 'no_room' }])).toEqual({ kind: 'running' })
})

test('the first reason for a stop stays', () => {
  const stopping = walk([...STARTED, ABORT, { type: 'stop', why: 'timed_out', message: 'y' }])
  expect(stopping).toEqual({ kind: 'stopping', why: 'aborted', message: 'x' })
  expect(walk([observed('turn'), observed('awaiting')], stopping)).toEqual(stopping)
})

test('a stop before the agent was started needs no agent', () => {
  expect(walk([ABORT])).toEqual({ kind: 'collecting', outcome: 'aborted', message: 'x' })
  expect(walk([{ type: 'admitted' }, ABORT])).toMatchObject({ kind: 'collecting', outcome: 'aborted' })
  // The agent may have been started just then.
  const preparing = walk([...STARTED.slice(0, 3), ABORT])
  expect(preparing).toMatchObject({ kind: 'stopping' })
  expect(step(preparing, { type: 'missing' })).toMatchObject({ kind: 'collecting', outcome: 'aborted' })
})

test('a run whose files are gone is lost, unless its outcome was decided before', () => {
  expect(walk([...STARTED, { type: 'missing' }])).toMatchObject({ kind: 'collecting', outcome: 'lost' })
  expect(walk([...STARTED, ABORT, { type: 'missing' }])).toMatchObject({ outcome: 'aborted' })
  expect(walk([{ type: 'missing' }])).toEqual({ kind: 'queued' })
})

const INPUTS: readonly RunInput[] = [
  ...STARTED,
  ABORT,
  observed('starting'),
  observed('idle'),
  observed('awaiting'),
  { type: 'observed', agent: 'ending', reason: 'budget', message: 'b' },
  observed('collecting'),
  observed('ended'),
  { type: 'no_room' },
  { type: 'missing' },
  { type: 'cannot_prepare', message: 'x' },
  { type: 'collected', outcome: 'completed', nowMs: 1 },
]
/** How far a run has come. `queued` and `preparing` may alternate while there is no room. */
const ORDER: Readonly<Record<RunState['kind'], number>> = {
  queued: 0,
  preparing: 0,
  running: 1,
  awaiting: 1,
  stopping: 2,
  collecting: 3,
  ended: 4,
}

test('10,000 random sequences never go back, and an ended run stays as it is', () => {
  const random = new Random(1)
  for (let round = 0; round < 10_000; round++) {
    let state: RunState = { kind: 'queued' }
    for (let at = 0; at < 30; at++) {
      const input = INPUTS[random.int(0, INPUTS.length - 1)]
      if (input === undefined) continue
      const next = step(state, input)
      expect(ORDER[next.kind]).toBeGreaterThanOrEqual(ORDER[state.kind])
      if (state.kind === 'ended') expect(next).toEqual(state)
      if (isSteerable(next)) expect(isActive(next)).toBe(true)
      state = next
    }
  }
})
