import { KeyedSerializer } from '@sandwire/async'
import type { AgentStart, AgentView, EndStatus, EventRange, RunResult } from '@sandwire/agent'
import { type ErrorCode, SandwireError } from '@sandwire/protocol'
import type { Log } from '../log.ts'
import { collectResult, endEvents } from './collect.ts'
import type { DiffStore } from './diff-store.ts'
import type { AgentFacts, RunRecord, Spent } from './record.ts'
import { type RunInput, type RunState, step, type StopReason } from './state.ts'
import type { RunStore } from './store.ts'
import { TASK } from './turns.ts'

/** The sandbox of a run. All methods may be repeated; they throw `SandwireError`. */
export interface RunSandbox {
  /** Creates the sandbox if it is the run's own, and starts it. Throws `ceiling_exceeded` or `too_many_sandboxes` without room. */
  start(): Promise<void>
  /** Clones the repository into the workspace; false while that is in progress. Throws when it cannot be cloned. */
  clone(): Promise<boolean>
  /** Stops the sandbox, which ends everything in it. */
  stop(): Promise<void>
  /** Destroys the run's own sandbox unless it is kept; else only lets it stop when idle again. */
  release(): Promise<void>
  view(): Promise<AgentView>
  /** Keeps the files as they are before the agent gets a message, if the sandbox stays. */
  hold(message: string): Promise<void>
  startAgent(start: AgentStart): Promise<AgentView>
  events(after: number): Promise<EventRange>
  stopAgent(reason: EndStatus, message: string): Promise<AgentView>
  result(): Promise<RunResult>
  /** The patch; undefined when there is none. */
  diff(): Promise<ReadableStream | undefined>
  /** The pack from which the changes can be published; undefined when there is none. */
  pack(): Promise<ReadableStream | undefined>
}

/** The credential gateway. */
export interface RunCredentials {
  /** Throws `agent_not_configured` when the server has no key for the model. */
  check(): Promise<void>
  /** What the agent is started with, with a new token of the gateway. */
  prepare(): Promise<AgentStart>
  /** What the run has used so far. */
  spent(): Promise<Spent | null>
  /** Ends the grant. */
  end(): Promise<void>
}

/** The account's index of runs. */
export interface RunIndex {
  /** True when the account has room for the run now. */
  admit(): Promise<boolean>
  /** Stores the run's state, and lets others start when it has ended. */
  report(record: RunRecord): Promise<void>
}

export interface RunLifecycleDependencies {
  readonly store: RunStore
  readonly sandbox: RunSandbox
  readonly credentials: RunCredentials
  readonly index: RunIndex
  readonly diffs: DiffStore
  readonly packs: DiffStore
  /** Installs the agent's program; false while that is in progress. */
  readonly ensureProgram: () => Promise<boolean>
  /** Between two pulls of events. */
  readonly pollMs: number
  readonly nowMs: () => number
  readonly log: Log
  readonly wakeAt: (atMs: number) => Promise<void>
}

/** How often a queued run asks for room, besides being woken when another ends. */
const QUEUE_POLL_MS = 5_000
const CLONE_POLL_MS = 500
/** How long preparing may take, with all retries. */
const PREPARE_MS = 15 * 60_000
/** How long the agent may take to end when it is stopped, before its sandbox is. */
const STOP_GRACE_MS = 2 * 60_000
/** How long the sandbox may be unreachable after the deadline until the run is given up. */
const GIVE_UP_MS = 15 * 60_000
/** Between two attempts when the sandbox or the provider does not respond. */
const RETRY_MS = 2_000
/** A view that is older is read again before an answer. */
const FRESH_MS = 500

/** There is no room now; there may be later. */
const NO_ROOM: ReadonlySet<ErrorCode> = new Set(['ceiling_exceeded', 'too_many_sandboxes'])
/** The sandbox is gone for good. */
const GONE: ReadonlySet<ErrorCode> = new Set(['sandbox_not_found', 'sandbox_destroying', 'files_missing'])

/** True when another run has to end first; false when the sandbox of the run would not even fit alone. */
function mayFitLater({ code, details }: SandwireError): boolean {
  if (!NO_ROOM.has(code) || details.ceiling?.startsWith('sandbox.') === true) return false
  const { limit, asked } = details
  return typeof limit !== 'number' || typeof asked !== 'number' || asked <= limit
}

/** Moves a run through its states, one step at a time. Every step can be repeated, so that a crash at any point only delays it. */
export class RunLifecycle {
  readonly #deps: RunLifecycleDependencies
  readonly #serializer = new KeyedSerializer()
  #pulledMs = Number.NEGATIVE_INFINITY

  constructor(deps: RunLifecycleDependencies) {
    this.#deps = deps
  }

  get record(): RunRecord {
    const record = this.#deps.store.read()
    if (record === undefined) throw new SandwireError('run_not_found', 'No run has this id')
    return record
  }

  /** Does what the state allows now, and sets the alarm for the rest. Called by the alarm and by wake requests. */
  advance(): Promise<void> {
    return this.#serializer.run('run', async () => {
      const { wakeAt, nowMs } = this.#deps
      // First, so that a crash in a step only delays the next one.
      if (!this.record.isEndReported) await wakeAt(nowMs() + QUEUE_POLL_MS)
      while (!this.record.isEndReported) {
        const before = this.record.state
        const waitMs = await this.#attempt(before)
        const after = this.record.state
        if (waitMs !== undefined) return wakeAt(nowMs() + waitMs)
        if (after.kind !== 'ended' && JSON.stringify(after) === JSON.stringify(before))
          return wakeAt(nowMs() + RETRY_MS)
      }
    })
  }

  /** Ends the run for this reason; returns as soon as that is stored. */
  async stop(why: StopReason, message: string): Promise<void> {
    await this.#apply({ type: 'stop', why, message })
  }

  /** Reads events and state of a working agent, unless that was just done. */
  async refresh(): Promise<void> {
    const { state } = this.record
    if (state.kind !== 'running' && state.kind !== 'awaiting' && state.kind !== 'stopping') return
    if (this.#deps.nowMs() - this.#pulledMs < FRESH_MS) return
    await this.#serializer.run('run', () => this.#attempt(this.record.state))
    await this.#deps.wakeAt(this.#deps.nowMs() + FRESH_MS)
  }

  /** Stores what the sandbox reported. */
  async observe(view: AgentView): Promise<void> {
    const agent: AgentFacts = {
      startedMs: view.startedMs,
      agentSessionId: view.agentSessionId,
      model: view.model,
      usage: view.usage,
      approvals: view.approvals,
      isTamperProof: view.isTamperProof,
    }
    this.#deps.store.update({ agent })
    await this.#apply({
      type: 'observed',
      agent: view.state,
      reason: view.reason,
      message: view.message,
    })
  }

  /** Performs the next step; returns how long to wait, or undefined when the state changed. */
  async #attempt(state: RunState): Promise<number | undefined> {
    try {
      return await this.#step(state)
    } catch (caught) {
      const error = SandwireError.from(caught)
      if (GONE.has(error.code)) return this.#onGone(error)
      const { id } = this.record
      this.#deps.log.warn('run_step_failed', { run: id, state: state.kind, code: error.code })
      return this.#onFailure(state, error)
    }
  }

  async #step(state: RunState): Promise<number | undefined> {
    switch (state.kind) {
      case 'queued':
        if (!(await this.#deps.index.admit())) return QUEUE_POLL_MS
        await this.#apply({ type: 'admitted' })
        return undefined
      case 'preparing':
        return this.#prepare(state.step)
      case 'running':
      case 'awaiting':
        return this.#poll()
      case 'stopping':
        return this.#stopAgent(state)
      case 'collecting':
        return this.#collect(state)
      case 'ended':
        await this.#deps.index.report(this.record)
        this.#deps.store.update({ isEndReported: true })
        return undefined
    }
  }

  async #prepare(preparation: 'sandbox' | 'clone' | 'agent'): Promise<number | undefined> {
    const { sandbox, nowMs, store } = this.#deps
    const { request } = this.record
    if (preparation === 'sandbox') {
      if (this.record.preparingSinceMs === null) store.update({ preparingSinceMs: nowMs() })
      // A missing key is reported before a sandbox is made.
      await this.#deps.credentials.check()
      // Sandboxes see what is installed when they start.
      if (!(await this.#deps.ensureProgram())) return CLONE_POLL_MS
      await sandbox.start()
      await this.#apply({ type: 'prepared', step: 'sandbox' })
      return undefined
    }
    if (preparation === 'clone') {
      if (request.source.kind === 'repo' && !(await sandbox.clone())) return CLONE_POLL_MS
      await this.#apply({ type: 'prepared', step: 'clone' })
      return undefined
    }
    const view = await this.#findOrStartAgent()
    if (this.record.deadlineMs === null) {
      const deadlineMs = nowMs() + request.limits.wallClockSeconds * 1000 + STOP_GRACE_MS
      store.update({ deadlineMs, journal: view.journal })
    }
    await this.observe(view)
    return this.record.state.kind === 'preparing' ? CLONE_POLL_MS : undefined
  }

  async #findOrStartAgent(): Promise<AgentView> {
    const { sandbox, credentials } = this.#deps
    try {
      // An earlier attempt may have started it.
      return await sandbox.view()
    } catch (error) {
      if (SandwireError.from(error).code !== 'not_found') throw error
      await sandbox.hold(TASK)
      return sandbox.startAgent(await credentials.prepare())
    }
  }

  /** Reads the state, then all new events. */
  async #poll(): Promise<number | undefined> {
    const { sandbox, nowMs, pollMs } = this.#deps
    const before = this.record.state.kind
    const view = await this.#viewOrMissing(() => sandbox.view())
    if (view === undefined) return undefined
    await this.#pull(view)
    await this.observe(view)
    await this.#countSpent()
    this.#pulledMs = nowMs()
    const { deadlineMs, state } = this.record
    if (deadlineMs !== null && nowMs() > deadlineMs)
      await this.#apply({ type: 'stop', why: 'timed_out', message: 'The run reached its time limit' })
    return state.kind === before ? pollMs : undefined
  }

  /** Stores what the run has used so far, which its agent reports only at its end. */
  async #countSpent(): Promise<void> {
    const { credentials, store, index } = this.#deps
    const spent = await credentials.spent()
    if (spent === null || JSON.stringify(spent) === JSON.stringify(this.record.spent)) return
    await index.report(store.update({ spent }))
  }

  async #stopAgent({ why, message }: Extract<RunState, { kind: 'stopping' }>): Promise<number | undefined> {
    const { sandbox, store, nowMs } = this.#deps
    if (this.record.stoppingSinceMs === null) store.update({ stoppingSinceMs: nowMs() })
    const view = await this.#viewOrMissing(() => sandbox.stopAgent(why, message))
    if (view === undefined) return undefined
    await this.#pull(view)
    await this.observe(view)
    const isLate = nowMs() - (this.record.stoppingSinceMs ?? nowMs()) > STOP_GRACE_MS
    if (this.record.state.kind !== 'stopping' || !isLate) return RETRY_MS
    // Its processes end with the sandbox; the next start makes the diff.
    store.update({ stoppingSinceMs: nowMs() })
    await sandbox.stop()
    return RETRY_MS
  }

  /** The view; undefined when the sandbox does not know the run, which changes the state. */
  async #viewOrMissing(read: () => Promise<AgentView>): Promise<AgentView | undefined> {
    try {
      const view = await read()
      const { journal } = this.record
      if (journal === null || journal === view.journal) return view
    } catch (error) {
      if (SandwireError.from(error).code !== 'not_found') throw error
    }
    await this.#apply({ type: 'missing' })
    return undefined
  }

  async #pull({ lastSeq }: Pick<AgentView, 'lastSeq'>): Promise<void> {
    const { sandbox, store } = this.#deps
    while (store.lastSeq < lastSeq) {
      const { events } = await sandbox.events(store.lastSeq)
      if (events.length === 0) return
      store.addEvents(events)
    }
  }

  async #collect(state: Extract<RunState, { kind: 'collecting' }>): Promise<number | undefined> {
    const { store, credentials, sandbox, nowMs } = this.#deps
    let { outcome, message } = state
    if (outcome === undefined) {
      const view = await this.#viewOrMissing(() => sandbox.view())
      if (view === undefined) return undefined
      if (view.state !== 'ended') return CLONE_POLL_MS
      await this.#pull(view)
      await this.observe(view)
      const result = this.record.result ?? (await collectResult(this.#deps))
      outcome = result.status
      message = result.message ?? undefined
    }
    if (!store.isComplete)
      store.addEvents(endEvents(store.lastSeq, { outcome, message: message ?? '', nowMs: nowMs() }))
    store.update({ spent: (await credentials.spent()) ?? this.record.spent })
    await credentials.end()
    await sandbox.release()
    await this.#apply({
      type: 'collected',
      outcome,
      nowMs: nowMs(),
      ...(message === undefined ? {} : { message }),
    })
    return undefined
  }

  /** The sandbox is gone, and the files of the run with it. */
  async #onGone(error: SandwireError): Promise<number | undefined> {
    const { state } = this.record
    if (state.kind === 'preparing') await this.#apply({ type: 'cannot_prepare', message: error.message })
    else await this.#apply({ type: 'missing' })
    return undefined
  }

  /** Decides whether a step is tried again. */
  async #onFailure(state: RunState, error: SandwireError): Promise<number | undefined> {
    const { nowMs, sandbox } = this.#deps
    const { preparingSinceMs, deadlineMs } = this.record
    if (state.kind === 'preparing') {
      if (state.step === 'sandbox' && mayFitLater(error)) {
        // What was created for it is removed, so that it does not take up room while it waits.
        await sandbox.release()
        await this.#apply({ type: 'no_room' })
        await this.#deps.index.report(this.record)
        return QUEUE_POLL_MS
      }
      const isLate = nowMs() - (preparingSinceMs ?? nowMs()) > PREPARE_MS
      if (error.info.retryable && !isLate) return RETRY_MS
      await this.#apply({ type: 'cannot_prepare', message: error.message })
      return undefined
    }
    if (deadlineMs !== null && nowMs() > deadlineMs + GIVE_UP_MS) await this.#apply({ type: 'missing' })
    return RETRY_MS
  }

  async #apply(input: RunInput): Promise<void> {
    const { store, index, log } = this.#deps
    const record = this.record
    const state = step(record.state, input)
    if (JSON.stringify(state) === JSON.stringify(record.state)) return
    const changed = store.update({ state })
    if (state.kind !== record.state.kind) log.info('run_state', { run: record.id, state: state.kind })
    // The end is a step of its own, which is repeated until the account has confirmed it.
    if (state.kind !== 'ended') await index.report(changed)
  }
}
