import { expect, test } from 'bun:test'
import { SandwireError } from '@sandwire/protocol'
import { Random } from '@sandwire/testing'
import type { DriverInput } from '../driver.ts'
import { deriveEvents } from '../journal.ts'
import { ClaudeDriver } from './claude-driver.ts'
import {
  DrivenAgent,
  permission,
  result,
  SECRET,
  text,
  toolResult,
  toolUse,
} from './claude-driver.fixture.ts'

const SEEDS = Number(process.env['SANDWIRE_SEEDS'] ?? 2_000)
const FIRST_SEED = Number(process.env['SANDWIRE_SEED'] ?? 1)
const STEPS = 60
const DAY_MS = 24 * 3600_000

const TOOLS = [
  'Bash',
  'Write',
  'TodoWrite',
  'TaskCreate',
  'TaskUpdate',
  'ExitPlanMode',
  'AskUserQuestion',
  '__proto__',
  '',
]

/** A line that a program may write: right, with parts missing or of another type, cut off, or none at all. */
function lineOf(random: Random): string {
  const id = `t${random.int(0, 3)}`
  const line = random.pick<() => object>([
    () => text(random.pick(['hello', SECRET, `a${SECRET}b`, '', '\ud800']), `m${random.int(0, 5)}`),
    () =>
      toolUse(id, random.pick(TOOLS), {
        file_path: '/workspace/x',
        todos: [{ content: SECRET, status: 'pending' }],
        plan: '1. a',
      }),
    () =>
      toolResult(id, random.pick<unknown>([SECRET, [{ type: 'text', text: 'x' }, 5], null, 7]), {
        task: { id },
      }),
    () => result({ is_error: random.chance(0.3), total_cost_usd: random.next() }),
    () =>
      permission(`r${random.int(0, 6)}`, random.pick(TOOLS), {
        command: SECRET,
        questions: [{ question: 'q' }],
      }),
    () => ({ type: 'control_cancel_request', request_id: `r${random.int(0, 6)}` }),
    () => ({
      type: 'system',
      subtype: random.pick(['init', 'api_retry', 'status', 'x']),
      session_id: 's',
      model: 'm',
      error: random.pick(['x', 'billing_error']),
    }),
    () => ({
      type: 'stream_event',
      event: { type: 'message_start', message: { id: `m${random.int(0, 5)}` } },
    }),
    () => ({
      type: 'stream_event',
      event: {
        type: 'content_block_delta',
        index: random.int(0, 1),
        delta: { type: 'text_delta', text: random.pick([SECRET.slice(0, 6), SECRET.slice(6), 'x']) },
      },
    }),
    () => ({ type: 'stream_event', event: { type: 'content_block_stop', index: random.int(0, 1) } }),
    () => ({
      type: 'command_lifecycle',
      command_uuid: `0000000${random.int(1, 6)}-0123-4456-8789-abcdef012300`,
      state: random.pick(['queued', 'started', 'completed', 'cancelled']),
    }),
    () => ({
      type: random.pick(['constructor', 'user', 'assistant', 'result']),
      message: random.pick<unknown>([null, 5, [], { content: [null, { type: 'text' }] }]),
    }),
  ])()
  const json = JSON.stringify(line)
  if (random.chance(0.1)) return json.slice(0, random.int(0, json.length))
  if (random.chance(0.1)) return random.pick(['garbage', '[]', 'null', '{"type":5}', '{}', '"', SECRET])
  return json
}

function inputOf(random: Random): DriverInput {
  const by = random.pick(['a', 'b'])
  if (random.chance(0.65)) return { kind: 'line', text: lineOf(random), isCut: random.chance(0.03) }
  return random.pick<DriverInput>([
    { kind: 'tick' },
    { kind: 'stderr', text: SECRET },
    { kind: 'message', id: `m${random.int(0, 3)}`, text: random.pick(['x', 'y']), by },
    { kind: 'approval', requestId: `r${random.int(0, 6)}`, decision: random.pick(['allow', 'deny']), by },
    { kind: 'interrupt' },
    ...(random.chance(0.2) ? [{ kind: 'stop', reason: 'aborted', message: 'x' } as const] : []),
  ])
}

function simulate(seed: number): void {
  const random = new Random(seed)
  const agent = new DrivenAgent({
    permission: random.pick(['ask', 'auto']),
    isInteractive: random.chance(0.3),
    limits: {
      idleMs: random.int(1, 10_000),
      exitMs: random.int(1, 5_000),
      approvalMs: random.int(1, 20_000),
      stepMs: random.int(1, 1_000),
      maxTurns: random.pick([null, 1, 5]),
      wallClockMs: random.int(1_000, 100_000),
    },
  })
  const give = (input: DriverInput): void => {
    try {
      agent.on(input)
    } catch (error) {
      // Only commands may be refused.
      if (!(error instanceof SandwireError) || !['message', 'approval', 'interrupt'].includes(input.kind))
        throw error
    }
  }
  for (let count = random.int(0, 2); count > 0; count -= 1) give(inputOf(random))
  give(random.chance(0.95) ? { kind: 'started' } : { kind: 'not_started', message: 'x' })
  for (let step = 0; step < STEPS; step += 1) {
    give(inputOf(random))
    agent.wait(random.int(0, random.chance(0.1) ? 20_000 : 200))
  }
  if (random.chance(0.5)) give({ kind: 'exit', code: random.int(0, 1), signal: null })
  // A program that never exits is killed by then.
  agent.wait(DAY_MS)
  if (agent.driver.outcome === undefined) expect(agent.steps).toContain('SIGKILL')
  give({ kind: 'exit', code: null, signal: 'SIGKILL' })
  check(agent)
}

function check(agent: DrivenAgent): void {
  expect(agent.driver.outcome).toBeDefined()
  expect(agent.driver.deadlineMs).toBeUndefined()
  expect(agent.driver.pendingApprovals).toEqual([])
  const shown = agent.effects.filter(({ kind }) => kind === 'emit' || kind.startsWith('partial'))
  expect(JSON.stringify([shown, agent.driver.outcome, agent.journal])).not.toContain(SECRET)
  // The events follow from the journal alone.
  const derived = [...deriveEvents(agent.journal, new ClaudeDriver(agent.options))]
  expect(JSON.stringify(derived.map(({ seq, event }) => [seq, event]))).toBe(
    JSON.stringify(agent.events.map((event, index) => [index + 1, event])),
  )
  // Every request has one outcome, every answer to the program is the only one.
  const asked = agent.eventsOf('awaiting_input').filter(({ kind }) => kind !== 'message')
  const decided = agent.eventsOf('status').filter((event) => event.status === 'approval')
  expect(decided.map((event) => event.requestId).toSorted()).toEqual(
    asked.map((event) => event.requestId).toSorted(),
  )
  const uuids = agent.written.filter(({ type }) => type === 'user').map(({ uuid }) => String(uuid))
  expect(new Set(uuids).size).toBe(uuids.length)
  // The steps to the end come in order, each once.
  const order = ['interrupt', 'end_input', 'SIGTERM', 'SIGKILL']
  const steps = agent.steps.slice(agent.steps.indexOf('end_input')).map((step) => order.indexOf(step))
  if (agent.steps.includes('end_input')) expect(steps).toEqual(steps.toSorted((a, b) => a - b))
  expect(new Set(agent.steps.filter((step) => step !== 'interrupt')).size).toBe(
    agent.steps.filter((step) => step !== 'interrupt').length,
  )
}

test(`the driver keeps its promises in ${SEEDS} random runs`, () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed += 1) {
    try {
      simulate(seed)
    } catch (error) {
      throw new Error(`Seed ${seed} failed. Replay: SANDWIRE_SEED=${seed} SANDWIRE_SEEDS=1`, { cause: error })
    }
  }
})
