import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { DEFAULT_SANDBOX_LIMITS } from '@sandwire/internal-api'
import { rejectionOf } from '@sandwire/testing'
import { ObjectAlarm, onAlarm } from '../src/sandbox/alarm.ts'
import type { SandboxState } from '../src/sandbox/state.ts'
import { SandboxStore } from '../src/sandbox/store.ts'
import { sqlOf } from './support/bun-sql.ts'

// The alarm is set first, for a crash on the way, and last, for what the steps have left.
const STEPS = ['revoke', 'rearm', 'audit', 'holders', 'poll', 'recheck', 'garbage', 'rearm'] as const
type Step = (typeof STEPS)[number]

const RUNNING: SandboxState = { kind: 'running', address: 'slot:1', epoch: 'e1', startedMs: 0 }

function open(state: SandboxState = RUNNING) {
  const store = new SandboxStore(sqlOf(new Database(':memory:')))
  const settings = {
    network: { policy: 'none', allow: [] },
    limits: DEFAULT_SANDBOX_LIMITS,
    env: {},
  } as const
  store.insert({
    id: '0'.repeat(32),
    owner: 'local',
    name: 'dev',
    createdMs: 0,
    lastActivityMs: 0,
    settings,
    state,
  })
  const done: Step[] = []
  const failing = new Set<Step>()
  const held: Promise<unknown>[] = []
  const does = (step: Step) => async (): Promise<void> => {
    done.push(step)
    if (failing.has(step)) throw new Error(`Cannot ${step}`)
  }
  const fire = (): Promise<void> =>
    onAlarm({
      store,
      revocation: { onAlarm: does('revoke') },
      audit: { deliver: does('audit') },
      holders: { deliver: does('holders') },
      lifecycle: { poll: does('poll') },
      recheck: { onAlarm: does('recheck') },
      provider: {},
      collectGarbage: does('garbage'),
      rearm: does('rearm'),
      hold: (work) => void held.push(work.catch(() => undefined)),
      mintRequestId: () => 'r',
    })
  return { done, failing, held, fire }
}

describe('the alarm of a sandbox', () => {
  test('retries revocations, is set again, sends the audit, polls and rechecks authorizations', async () => {
    const made = open()
    await made.fire()
    expect(made.done).toEqual([...STEPS])
    expect(made.held).toHaveLength(1)
  })

  test.each(['stopped', 'failed'] as const)('does not poll a sandbox that is %s', async (kind) => {
    const made = open({ kind, reason: 'why' })
    await made.fire()
    expect(made.done).toEqual(['revoke', 'rearm', 'audit', 'holders', 'garbage', 'rearm'])
  })

  test.each(['audit', 'holders', 'poll', 'recheck', 'garbage', 'rearm'] as const)(
    '(threat T6) runs the other steps when %s fails, and throws to be fired again',
    async (step) => {
      const made = open()
      made.failing.add(step)
      expect((await rejectionOf(made.fire()))?.message).toBe(`Cannot ${step}`)
      expect(made.done).toEqual([...STEPS])
    },
  )

  test('throws the first error', async () => {
    const made = open()
    for (const step of ['poll', 'recheck'] as const) made.failing.add(step)
    expect((await rejectionOf(made.fire()))?.message).toBe('Cannot poll')
  })

  test('(threat T6) does not wait for revocations', async () => {
    const made = open()
    made.failing.add('revoke')
    await made.fire()
    expect(made.done).toEqual([...STEPS])
  })
})

test('the alarm of an object is set for the earliest time', async () => {
  let setMs: number | null = null
  const alarm = new ObjectAlarm({
    getAlarm: async () => setMs,
    setAlarm: async (atMs) => void (setMs = atMs),
    deleteAlarm: async () => void (setMs = null),
  })
  await Promise.all([alarm.setBy(300), alarm.setBy(100), alarm.setBy(200)])
  expect(setMs as number | null).toBe(100)
  await alarm.setAt(500)
  expect(setMs as number | null).toBe(500)
  await alarm.setAt(undefined)
  expect(setMs as number | null).toBeNull()
})
