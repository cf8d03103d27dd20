import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import type { AgentView, EndStatus } from '@sandwire/agent'
import { SandwireError } from '@sandwire/protocol'
import { Random } from '@sandwire/testing'
import { openDiffStore } from '../src/run/diff-store.ts'
import { RunLifecycle, type RunSandbox } from '../src/run/lifecycle.ts'
import type { RunRecord, Spent } from '../src/run/record.ts'
import { RunStore } from '../src/run/store.ts'
import { MemoryStore } from './support/memory-store.ts'
import { sqlOf } from './support/bun-sql.ts'
import { FakeAgent } from './support/fake-agents.ts'

const RUN = `${'0'.repeat(32)}_${'1'.repeat(24)}`

function recordOf(): RunRecord {
  return {
    id: RUN,
    owner: 'ann',
    ownerName: 'Ann',
    sandbox: '0'.repeat(32),
    request: {
      source: { kind: 'repo', repo: 'https://example.com/a' },
      task: 'x',
      agent: 'claude',
      permission: 'auto',
      limits: { wallClockSeconds: 60, idleSeconds: 60, approvalSeconds: 60, turns: null, budgetUsd: 1 },
      network: { policy: 'none', allow: [] },
      keep: false,
      isInteractive: false,
      purpose: 'change',
    },
    createdMs: 0,
    state: { kind: 'queued' },
    preparingSinceMs: null,
    stoppingSinceMs: null,
    deadlineMs: null,
    journal: null,
    cloneSession: null,
    agent: null,
    result: null,
    diffBytes: null,
    isEndReported: false,
    spent: null,
  }
}

class Crash extends Error {}

/** An environment in which every call may fail before or after it had its effect, and control may be killed at every call. */
class FaultyEnvironment {
  nowMs = 0
  readonly store = new RunStore(sqlOf(new Database(':memory:')))
  agent: FakeAgent | undefined
  starts = 0
  isSandboxRunning = false
  isReleased = false
  isGrantOpen = false
  activeRuns = 0
  spent: Spent | null = null
  /** As the account's list of runs has it. */
  listedSpent: Spent | null = null
  /** Events that were emitted; all of them must be stored in the end. */
  readonly random: Random
  readonly faults: number

  constructor(seed: number, faults: number) {
    this.random = new Random(seed)
    this.faults = faults
    this.store.insert(recordOf())
  }

  /** A new object, as after a crash. */
  open(): RunLifecycle {
    const call = async <T>(run: () => T | Promise<T>): Promise<T> => {
      this.#maybeFail()
      const value = await run()
      this.#maybeFail()
      return value
    }
    const running = (): FakeAgent => {
      if (this.isReleased) throw new SandwireError('sandbox_not_found', 'gone')
      this.isSandboxRunning = true
      if (this.agent === undefined) throw new SandwireError('not_found', 'none')
      return this.agent
    }
    const sandbox: RunSandbox = {
      start: () =>
        call(() => {
          if (this.random.int(0, 4 - 1) === 0) throw new SandwireError('ceiling_exceeded', 'full')
          this.isSandboxRunning = true
          this.isReleased = false
        }),
      clone: () => call(() => this.random.int(0, 2 - 1) === 0),
      stop: () => call(() => void (this.isSandboxRunning = false)),
      release: () => call(() => void (this.isReleased = true)),
      view: () => call((): AgentView => running().view),
      hold: () => call(() => undefined),
      startAgent: () =>
        call(() => {
          this.starts += 1
          this.agent = new FakeAgent(RUN, {})
          return this.agent.view
        }),
      events: (after) =>
        call(() => {
          const { events, journal, state } = running()
          const rest = events.filter(({ seq }) => seq > after).slice(0, 2)
          return { journal, state, events: rest, lastSeq: events.length }
        }),
      stopAgent: (reason: EndStatus) =>
        call(() => {
          const agent = running()
          if (agent.state !== 'ended' && this.random.int(0, 3 - 1) === 0) agent.end(reason)
          return agent.view
        }),
      result: () => call(() => running().result),
      diff: () => call(() => new Response(running().diff).body ?? undefined),
      pack: () => call(() => undefined),
    }
    return new RunLifecycle({
      store: this.store,
      sandbox,
      credentials: {
        check: () => Promise.resolve(),
        prepare: () =>
          call(() => {
            this.isGrantOpen = true
            return { task: '' } as never
          }),
        spent: () => Promise.resolve(this.spent),
        end: () => call(() => void (this.isGrantOpen = false)),
      },
      index: {
        admit: () => call(() => this.random.int(0, 3 - 1) > 0),
        report: (record) =>
          call(() => {
            this.activeRuns = record.state.kind === 'ended' ? 0 : 1
            this.listedSpent = record.spent
          }),
      },
      diffs: openDiffStore(RUN, this.store, undefined, 'patch'),
      packs: openDiffStore(RUN, this.store, undefined, 'pack'),
      ensureProgram: () => call(() => this.random.int(0, 1) > 0),
      pollMs: 1_000,
      nowMs: () => this.nowMs,
      log: { info: () => undefined, warn: () => undefined, error: () => undefined },
      wakeAt: () => Promise.resolve(),
    })
  }

  /** Moves on what happens in the sandbox. */
  act(): void {
    this.nowMs += 1_000 + this.random.int(0, 3_000 - 1)
    const { agent } = this
    if (agent === undefined || agent.state === 'ended') return
    const what = this.random.int(0, 8 - 1)
    if (what < 4) agent.emit({ type: 'stdout', data: 'x' })
    else if (what === 4) agent.ask('r')
    else if (what === 5) agent.state = 'turn'
    else if (what === 6) agent.end('completed')
  }

  #maybeFail(): void {
    if (this.random.int(0, 100 - 1) >= this.faults) return
    if (this.random.int(0, 2 - 1) === 0) throw new Crash()
    throw new SandwireError('sandbox_unreachable', 'away')
  }
}

async function simulate(seed: number, faults: number): Promise<FaultyEnvironment> {
  const environment = new FaultyEnvironment(seed, faults)
  let lifecycle = environment.open()
  for (let round = 0; round < 400; round++) {
    environment.act()
    try {
      if (environment.random.int(0, 60 - 1) === 0) await lifecycle.stop('aborted', 'x')
      await lifecycle.advance()
    } catch (error) {
      // Control was killed; the alarm opens the object again.
      if (!(error instanceof SandwireError || error instanceof Crash)) throw error
      lifecycle = environment.open()
    }
    if (environment.store.read()?.state.kind === 'ended' && environment.activeRuns === 0) return environment
  }
  throw new Error(`The run did not end; seed ${seed}, ${JSON.stringify(environment.store.read())}`)
}

test('a run ends with everything released and every event stored, whatever fails on the way', async () => {
  for (let seed = 1; seed <= 400; seed++) {
    const environment = await simulate(seed, seed % 2 === 0 ? 15 : 0)
    const record = environment.store.read()
    const at = `seed ${seed}`
    expect([at, environment.starts <= 1, environment.isReleased, environment.isGrantOpen]).toEqual([
      at,
      true,
      true,
      false,
    ])
    expect(record?.state.kind).toBe('ended')
    const stored = environment.store.events(0, 1_000)
    expect(stored.map(({ seq }) => seq)).toEqual(stored.map((_, index) => index + 1))
    expect(stored.at(-1)?.event.type).toBe('complete')
    if (environment.agent !== undefined && record?.result !== null) {
      expect(stored.map(({ event }) => event)).toEqual(environment.agent.events.map(({ event }) => event))
      expect(record?.diffBytes).toBe(environment.agent.diff.length)
    }
  }
})

test('what a run has used is shown while it works', async () => {
  const environment = new FaultyEnvironment(1, 0)
  const lifecycle = environment.open()
  for (let round = 0; round < 100 && environment.store.read()?.state.kind !== 'running'; round++)
    await lifecycle.advance()
  const tokens = { inputTokens: 9, outputTokens: 9, cacheReadTokens: 0, cacheWriteTokens: 0 }
  environment.spent = { ...tokens, costUsd: 1.5, requests: 3 }
  await lifecycle.advance()
  const record = environment.store.read()
  expect(record?.state.kind).toBe('running')
  expect([record?.spent, environment.listedSpent]).toEqual([environment.spent, environment.spent])
})

test('a large diff is kept in chunks and read back exactly', async () => {
  const environment = new FaultyEnvironment(1, 0)
  const diffs = openDiffStore(RUN, environment.store, undefined, 'patch')
  const packs = openDiffStore(RUN, environment.store, undefined, 'pack')
  await packs.write(new Blob(['pack']).stream())
  const bytes = crypto.getRandomValues(new Uint8Array(60_000))
  const large = new Uint8Array(2_500_000).map((_, at) => bytes[at % bytes.length] ?? 0)
  expect(await diffs.write(new Blob([large]).stream())).toBe(large.length)
  expect(new Uint8Array(await new Response(await diffs.read()).arrayBuffer())).toEqual(large)
  expect(await new Response(await packs.read()).text()).toBe('pack')
  expect(await diffs.write(new Blob(['small']).stream())).toBe(5)
  expect(await new Response(await diffs.read()).text()).toBe('small')
})

test('a large diff and its pack are kept in the store of versions, and deleted from it', async () => {
  const environment = new FaultyEnvironment(1, 0)
  const segments = new MemoryStore()
  const large = new Uint8Array(2_500_000).fill(1)
  for (const file of ['patch', 'pack'] as const) {
    const diffs = openDiffStore(RUN, environment.store, segments, file)
    expect(await diffs.write(new Blob([large]).stream())).toBe(large.length)
    expect((await new Response(await diffs.read()).arrayBuffer()).byteLength).toBe(large.length)
  }
  expect(segments.objects.size).toBe(2)
  for (const file of ['patch', 'pack'] as const)
    await openDiffStore(RUN, environment.store, segments, file).delete()
  expect(segments.objects.size).toBe(0)
})
