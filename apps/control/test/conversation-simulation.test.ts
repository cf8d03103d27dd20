import { expect, test } from 'bun:test'
import type { AgentState, NumberedEvent, RunEvent } from '@sandwire/agent'
import { Random } from '@sandwire/testing'
import type { ClientFrame, ConversationEntry } from '../src/conversation/frames.ts'
import {
  type ConversationSnapshot,
  NEW_CONVERSATION,
  type RestoreNotice,
} from '../src/conversation/snapshot.ts'
import { type ConversationInput, ConversationState, type Failure } from '../src/conversation/state.ts'
import type { Work } from '../src/conversation/work.ts'

const SEEDS = Number(process.env['SANDWIRE_SEEDS'] ?? 200)
const FIRST_SEED = Number(process.env['SANDWIRE_SEED'] ?? 1)
const STEPS = 120

class Refusal extends Error {
  readonly failure: Failure
  constructor(code: Failure['code'], retryable: boolean) {
    super(code)
    this.failure = { code, message: code, retryable }
  }
}

/** A program in the model's sandbox. */
class ModelRun {
  readonly id: string
  readonly events: NumberedEvent[] = []
  readonly answers = new Map<string, string[]>()
  readonly open = new Set<string>()
  state: AgentState = 'starting'
  readonly isRefused: boolean
  #asked = 0

  constructor(id: string, isRefused: boolean) {
    this.id = id
    this.isRefused = isRefused
    this.#enter('starting')
  }

  emit(event: RunEvent): void {
    this.events.push({ seq: this.events.length + 1, atMs: 0, event })
  }

  #enter(state: AgentState): void {
    this.state = state
    this.emit({ type: 'status', status: 'state', state })
  }

  /** The agent does something. */
  step(random: Random): void {
    if (this.state === 'ended' || this.state === 'idle') return
    if (this.isRefused) return this.end('failed')
    if (this.state === 'starting') {
      this.emit({
        type: 'status',
        status: 'session',
        agentSessionId: `s-${this.id}`,
        model: 'm',
        version: '1',
      })
      return this.#enter('turn')
    }
    if (this.state === 'awaiting') return
    const dice = random.next()
    if (dice < 0.4) this.emit({ type: 'text', text: `t${this.events.length}` })
    else if (dice < 0.55) {
      const requestId = `r${this.#asked++}`
      this.open.add(requestId)
      this.#enter('awaiting')
      this.emit({
        type: 'awaiting_input',
        prompt: 'p',
        requestId,
        kind: 'permission',
        deadlineMs: 60_000_000,
        tool: { name: random.pick(['Write', 'Bash']), title: '', input: {} },
      })
    } else if (dice < 0.6) this.end('crashed')
    else this.rest()
  }

  rest(): void {
    this.#enter('idle')
    this.emit({
      type: 'awaiting_input',
      prompt: 'p',
      requestId: `turn-${this.events.length}`,
      kind: 'message',
      deadlineMs: null,
    })
  }

  message(id: string): void {
    if (this.state === 'ended') throw new Refusal('conflict', false)
    this.emit({ type: 'status', status: 'message', id, text: 'x', by: 'a', receipt: 'queued' })
    if (this.state === 'idle') this.#enter('turn')
  }

  answer(requestId: string, decision: 'allow' | 'deny'): void {
    const given = this.answers.get(requestId) ?? []
    this.answers.set(requestId, [...given, decision])
    if (!this.open.delete(requestId)) throw new Refusal('conflict', false)
    this.emit({ type: 'status', status: 'approval', requestId, outcome: decision, by: 'x' })
    if (this.open.size === 0) this.#enter('turn')
  }

  end(status: 'failed' | 'crashed' | 'aborted'): void {
    for (const requestId of this.open)
      this.emit({ type: 'status', status: 'approval', requestId, outcome: 'withdrawn', by: null })
    this.open.clear()
    this.emit({
      type: 'result',
      diff: '',
      isDiffOmitted: false,
      summary: '',
      filesChanged: [],
      status,
      treeHash: null,
    })
    this.state = 'ended'
    this.emit({ type: 'complete', exitCode: 1, signal: null })
  }
}

/** A conversation with a sandbox that fails, loses responses, and an object that is evicted at any point. */
class Model {
  readonly random: Random
  readonly runs = new Map<string, ModelRun>()
  readonly received: string[] = []
  /** In the order in which they are stored. */
  readonly accepted: string[] = []
  /** Acknowledged while they wait for the end of a turn. */
  readonly waited: string[] = []
  readonly removed: string[] = []
  readonly entries: ConversationEntry[] = []
  readonly persisted: string[] = []
  /** The files of the sandbox, as the agent knows them, and each version of them. */
  files = ''
  known = ''
  readonly saved: string[] = []
  restored: { readonly key: string; readonly undoVersion: number } | undefined
  keys = 0
  /** Messages with which the agent was not told that files were restored. */
  readonly untold: string[] = []
  faults = 0.2
  now = 0
  #stored = JSON.stringify(NEW_CONVERSATION)
  state = new ConversationState('c')
  socket: { run: string; after: number } | undefined
  #messages = 0

  constructor(seed: number) {
    this.random = new Random(seed)
  }

  on(input: ConversationInput): void {
    const effects = this.state.on(input, this.now)
    this.#stored = JSON.stringify(this.state.snapshot)
    for (const effect of effects) {
      if (effect.kind === 'append') this.entries.push(effect.entry)
      if (effect.kind === 'persist') this.persisted.push(effect.key)
      if (effect.kind === 'send' && effect.frame.type === 'message_ack' && effect.frame.seq === null)
        this.waited.push(effect.frame.id)
      if (effect.kind === 'append' && effect.entry.frame.type === 'user_message')
        this.accepted.push(effect.entry.frame.id)
    }
    if (!this.state.wantsSocket) this.socket = undefined
  }

  evict(): void {
    this.socket = undefined
    this.state = new ConversationState('c', JSON.parse(this.#stored) as ConversationSnapshot)
    this.on({ type: 'restarted' })
  }

  frame(frame: ClientFrame): void {
    this.on({
      type: 'frame',
      frame,
      sender: { socket: 's', account: 'a', name: 'A' },
      newId: `m${this.#messages++}`,
    })
  }

  work(): boolean {
    const work = this.state.work(this.now)
    if (work === undefined) return false
    if (this.random.chance(this.faults)) {
      const isLost = this.random.chance(0.5)
      // Performed, but its result never arrives, because the object is evicted.
      if (isLost) {
        try {
          this.perform(work)
        } catch {
          // Its result is lost too.
        }
        this.evict()
      } else
        this.on({
          type: 'failed',
          work,
          failure: { code: 'sandbox_unreachable', message: 'x', retryable: true },
        })
      return true
    }
    try {
      const result = this.perform(work)
      if (result !== undefined) this.on(result)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      this.on({ type: 'failed', work, failure: error.failure })
    }
    return true
  }

  perform(work: Work): ConversationInput | undefined {
    if (work.kind === 'pin') return { type: 'pinned', isPinned: work.isPinned }
    if (work.kind === 'restore') return this.#restore(work)
    if ((work.kind === 'start' || work.kind === 'deliver') && !work.isHeld) return this.#hold(work)
    const run = this.runs.get(work.run)
    if (work.kind === 'start') return this.#start(work)
    if (work.kind === 'forget') {
      if (run?.state !== 'ended') run?.end('aborted')
      return { type: 'forgotten', run: work.run }
    }
    if (run === undefined) throw new Refusal('not_found', false)
    switch (work.kind) {
      case 'connect':
        this.socket = { run: work.run, after: work.after }
        return { type: 'opened', run: work.run }
      case 'deliver':
        if (!this.received.includes(work.message.id)) {
          run.message(work.message.id)
          this.#received(work.message.id, work.notice)
        }
        return { type: 'delivered', run: work.run, id: work.message.id }
      case 'answer':
        run.answer(work.answer.requestId, work.answer.decision)
        return { type: 'answered', run: work.run, requestId: work.answer.requestId }
      case 'interrupt':
        if (run.state === 'turn') run.rest()
        return { type: 'interrupted', run: work.run }
      case 'stop':
        if (run.state !== 'ended') run.end('aborted')
        return { type: 'stopped', run: work.run }
      case 'check':
        return { type: 'checked', run: work.run, agent: run.state, lastSeq: run.events.length }
    }
  }

  #start({ run: id, message, resume, notice }: Extract<Work, { kind: 'start' }>): ConversationInput {
    if (!this.runs.has(id)) {
      if ([...this.runs.values()].some(({ state }) => state !== 'ended')) throw new Refusal('conflict', false)
      const run = new ModelRun(id, resume !== null && this.random.chance(0.3))
      this.runs.set(id, run)
      if (!run.isRefused) this.#received(message.id, notice)
    }
    return { type: 'started', run: id }
  }

  /** The agent gets a message, and begins to change files. */
  #received(id: string, notice: RestoreNotice | null): void {
    this.received.push(id)
    // It is told whenever the files are not those that it left.
    if (this.files !== this.known && notice === null) this.untold.push(id)
    this.files = `after ${id}`
    this.known = this.files
  }

  /** Keeps the files as they are before a message. */
  #hold({ message }: Extract<Work, { kind: 'start' | 'deliver' }>): ConversationInput {
    if (this.random.chance(this.faults))
      return { type: 'held', message: message.id, held: { version: null, problem: 'timed_out' } }
    return { type: 'held', message: message.id, held: { version: this.#save(), problem: null } }
  }

  #save(): number {
    if (this.saved.at(-1) !== this.files) this.saved.push(this.files)
    return this.saved.length
  }

  #restore({ restore, kept }: Extract<Work, { kind: 'restore' }>): ConversationInput {
    const { key, version } = restore
    if ([...this.runs.values()].some(({ state }) => state !== 'ended')) throw new Error('An agent works')
    const isRepeated = this.restored?.key === key
    if (!isRepeated && this.random.chance(this.faults / 4)) throw new Refusal('not_found', false)
    const undoVersion = this.restored?.key === key ? this.restored.undoVersion : this.#save()
    expect(kept).toContain(version)
    this.restored = { key, undoVersion }
    this.files = this.saved[version - 1] ?? ''
    return { type: 'restored', key, undoVersion }
  }

  read(): void {
    const { socket } = this
    if (socket === undefined) return
    const next = this.runs.get(socket.run)?.events[socket.after]
    if (next === undefined) return
    this.socket = { ...socket, after: next.seq }
    this.on({ type: 'events', run: socket.run, events: [next] })
  }

  step(): void {
    const { random } = this
    const dice = random.next()
    const open = this.state.snapshot.requests.map(({ requestId }) => requestId)
    const waiting = this.state.snapshot.waiting.map(({ id }) => id)
    if (random.chance(0.15)) this.requestRestore()
    if (dice < 0.1) this.frame({ type: 'message', content: 'x', whenIdle: random.chance(0.5) })
    else if (dice < 0.12 && waiting.length > 0) this.changeWaiting(random.pick(waiting))
    else if (dice < 0.15 && open.length > 0)
      this.frame({
        type: 'permission_response',
        requestId: random.pick(open),
        decision: random.pick(['allow', 'deny']),
        always: random.chance(0.2),
      })
    else if (dice < 0.17) this.frame({ type: 'interrupt' })
    else if (dice < 0.18) this.frame({ type: 'close' })
    else if (dice < 0.22) this.evict()
    else if (dice < 0.25 && this.socket !== undefined) {
      const { run } = this.socket
      this.socket = undefined
      this.on({ type: 'lost', run })
    } else if (dice < 0.5) this.work()
    else if (dice < 0.75) this.read()
    else for (const run of this.runs.values()) run.step(random)
    this.now += random.int(0, 1_000)
    if ((this.state.wakeMs ?? Number.POSITIVE_INFINITY) <= this.now) this.on({ type: 'tick' })
  }

  /** A person restores the files of a message, or undoes the last restore. */
  requestRestore(): void {
    const { turns, undoVersions } = this.state.snapshot
    const turn = turns.length === 0 ? undefined : this.random.pick(turns)
    const isUndo = this.random.chance(0.4) && undoVersions.length > 0
    if (!isUndo && turn === undefined) return
    const target = isUndo ? ({ undo: true } as const) : { message: turn?.message ?? '' }
    const sender = { socket: 's', account: 'a', name: 'A' }
    this.keys += 1
    this.on({ type: 'restore', target, key: `k${this.keys}`, sender })
  }

  changeWaiting(id: string): void {
    switch (this.random.int(0, 2)) {
      case 0:
        return this.frame({ type: 'message_now', id })
      case 1:
        return this.frame({ type: 'message_edit', id, content: 'y' })
      default:
        this.frame({ type: 'message_remove', id })
        this.removed.push(id)
    }
  }

  /** Faults have stopped, and every request is answered. */
  settle(): void {
    this.faults = 0
    for (let round = 0; round < 5_000; round += 1) {
      for (const requestId of this.state.snapshot.requests
        .filter(({ answer }) => answer === null)
        .map((each) => each.requestId))
        this.frame({ type: 'permission_response', requestId, decision: 'allow' })
      for (const run of this.runs.values()) if (run.state !== 'awaiting') run.step(this.random)
      for (let count = 0; count < 20; count += 1) this.read()
      this.work()
      const { program, queue, requests, waiting, isPaused, restore } = this.state.snapshot
      const [first] = waiting
      if (isPaused && first !== undefined) this.frame({ type: 'message_now', id: first.id })
      const isIdle = this.state.work(Number.MAX_SAFE_INTEGER) === undefined
      const isDone = isIdle && restore === null && queue.length + waiting.length + requests.length === 0
      if (isDone && (program.kind === 'none' || program.kind === 'resting')) return
      this.now += 500
      this.on({ type: 'tick' })
    }
    throw new Error(`Did not settle: ${JSON.stringify(this.state.snapshot)}`)
  }
}

function check(model: Model): void {
  const { entries, received, accepted, waited, removed, runs, persisted, untold } = model
  expect(untold).toEqual([])
  expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index + 1))
  const dropped = entries.flatMap(({ frame }) => (frame.type === 'message_dropped' ? [frame.id] : []))
  // Each message reached one program, once and in order, or its sender was told.
  expect(new Set(received).size).toBe(received.length)
  expect(accepted.filter((id) => !received.includes(id) && !dropped.includes(id))).toEqual([])
  expect(received).toEqual(accepted.filter((id) => received.includes(id)))
  // What waited for the end of a turn was given to the agent once, unless a person removed it.
  expect(waited.filter((id) => !removed.includes(id) && !accepted.includes(id))).toEqual([])
  expect(accepted.filter((id) => removed.includes(id))).toEqual([])
  // Every text of every program is stored once, in order.
  const texts = [...runs.values()].flatMap(({ id, events }) =>
    events.filter(({ event }) => event.type === 'text').map(({ seq }) => `${id}-${seq}`),
  )
  const stored = entries.flatMap(({ frame }) =>
    frame.type === 'sdk_message' && frame.message['type'] === 'assistant'
      ? [String(frame.message['uuid'])]
      : [],
  )
  const known = texts.filter((uuid) => stored.includes(uuid))
  expect(stored).toEqual(known)
  // Only programs that were given up before they began may have said something that is not stored.
  expect(
    texts.filter((uuid) => !stored.includes(uuid)).every((uuid) => dropped.length > 0 && uuid !== ''),
  ).toBe(true)
  // Each answer reached the agent once; the request has one outcome.
  for (const { answers } of runs.values())
    for (const given of answers.values()) expect(new Set(given).size).toBe(1)
  const resolved = entries.flatMap(({ seq, frame }) =>
    frame.type === 'request_resolved' ? [{ seq, id: frame.requestId }] : [],
  )
  const requested = entries.filter(({ frame }) => frame.type === 'tool_permission_request')
  expect(resolved.length).toBe(requested.length)
  expect(new Set(persisted).size).toBe(persisted.length)
  // Every turn that began has ended.
  const turns = [...runs.values()].flatMap(({ events }) =>
    events.filter(({ event }) => event.type === 'awaiting_input' && event.kind === 'message'),
  )
  const done = entries.filter(({ frame }) => frame.type === 'done')
  expect(done.length).toBeGreaterThanOrEqual(dropped.length > 0 ? 0 : turns.length)
  const { program, isPinned, turn } = model.state.snapshot
  expect([program.kind === 'resting' && program.agent === 'awaiting', false]).toContain(isPinned)
  if (program.kind === 'resting' && program.agent === 'idle') expect(turn).toBeNull()
}

test(`a conversation loses and repeats nothing in ${SEEDS} random runs with evictions`, () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed += 1) {
    const model = new Model(seed)
    try {
      for (let step = 0; step < STEPS; step += 1) model.step()
      model.settle()
      check(model)
    } catch (error) {
      throw new Error(`Seed ${seed} failed. Replay: SANDWIRE_SEED=${seed} SANDWIRE_SEEDS=1`, { cause: error })
    }
  }
})
