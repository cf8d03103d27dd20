import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { DEFAULT_SANDBOX_LIMITS } from '@sandwire/internal-api'
import { rejectionOf } from '@sandwire/testing'
import { ringAlarm } from '../src/sandbox/alarm.ts'
import type { SandboxState } from '../src/sandbox/state.ts'
import { SandboxStore } from '../src/sandbox/store.ts'
import { sqlOf } from './support/bun-sql.ts'

const STEPS = ['cut', 'tell', 'look', 'reauthorise', 'rearm'] as const
type Step = (typeof STEPS)[number]

const RUNNING: SandboxState = { is: 'running', address: 'slot:1', epoch: 'e1', startedMs: 0 }

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
  const ring = (): Promise<void> =>
    ringAlarm({
      store,
      cutting: { ring: does('cut') },
      trail: { tell: does('tell') },
      life: { look: does('look') },
      reauthorizing: { ring: does('reauthorise') },
      rearm: does('rearm'),
      hold: (work) => void held.push(work.catch(() => undefined)),
      mintRequestId: () => 'r',
    })
  return { done, failing, held, ring }
}

describe('the alarm of a sandbox', () => {
  test('cuts, tells, looks, asks for rights again and is set anew', async () => {
    const made = open()
    await made.ring()
    expect(made.done).toEqual([...STEPS])
    expect(made.held).toHaveLength(1)
  })

  test.each(['stopped', 'failed'] as const)('leaves one alone that is %s', async (is) => {
    const made = open({ is, reason: 'why' })
    await made.ring()
    expect(made.done).toEqual(['cut', 'tell', 'rearm'])
  })

  test.each(['tell', 'look', 'reauthorise', 'rearm'] as const)(
    '(threat T6) does all the rest when it cannot %s, and rings again for that',
    async (step) => {
      const made = open()
      made.failing.add(step)
      expect((await rejectionOf(made.ring()))?.message).toBe(`Cannot ${step}`)
      expect(made.done).toEqual([...STEPS])
    },
  )

  test('says what failed first', async () => {
    const made = open()
    for (const step of ['look', 'rearm'] as const) made.failing.add(step)
    expect((await rejectionOf(made.ring()))?.message).toBe('Cannot look')
  })

  test('(threat T6) waits for no cut', async () => {
    const made = open()
    made.failing.add('cut')
    await made.ring()
    expect(made.done).toEqual([...STEPS])
  })
})
