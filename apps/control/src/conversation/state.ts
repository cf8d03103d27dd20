import type { AgentState, NumberedEvent } from '@sandwire/agent'
import type { ErrorCode } from '@sandwire/protocol'
import { takeAgentEvent } from './agent-events.ts'
import type { Held, RestoreTarget } from '../run/turns.ts'
import { ConversationDraft, type ConversationEffect } from './draft.ts'
import type { Activity, ClientFrame, ConversationStateFrame, LiveFrame, SandboxStatus } from './frames.ts'
import { changeWaiting, releaseWaiting, sendNow, takeMessage } from './messages.ts'
import { toPersisted } from './persisted-message.ts'
import { requestRestore, restoreFailed, restorePointsOf, takeHeld, takeRestored } from './restore.ts'
import { type ConversationSnapshot, type GivenAnswer, NEW_CONVERSATION, type Sender } from './snapshot.ts'
import { activityOf, isAtRest, nextWork, sandboxStatusOf, stateFrameOf, type Work } from './work.ts'

/** How long a message waits until it is dropped and its sender gets an error. */
const QUEUE_MS = 5 * 60_000
/** Tools that are allowed for a conversation; the oldest is forgotten. */
const MAX_ALLOWED_TOOLS = 100
/** Between two attempts when the sandbox does not respond. */
const RETRY_MS = 2_000
/** After the deadline of a request, the agent has denied it and goes on. */
const DEADLINE_MARGIN_MS = 1_000
/** The sandbox or the program in it does not exist any more. */
const GONE: ReadonlySet<ErrorCode> = new Set([
  'not_found',
  'sandbox_not_found',
  'sandbox_destroying',
  'files_missing',
])
const GONE_MESSAGE =
  'The agent ended unexpectedly, and its sandbox does not know it any more. Send a message to go on.'

/** A failed attempt. `retryable`: it is worth another. */
export interface Failure {
  readonly code: ErrorCode
  readonly message: string
  readonly retryable: boolean
}

export type ConversationInput =
  /** A frame of a browser. `newId` is for a message that has no id. */
  | { readonly type: 'frame'; readonly frame: ClientFrame; readonly sender: Sender; readonly newId: string }
  /** The object was constructed again: no socket to the sandbox is open. */
  | { readonly type: 'restarted' }
  | { readonly type: 'tick' }
  /** A person has requested that the files are restored. */
  | {
      readonly type: 'restore'
      readonly target: RestoreTarget
      readonly key: string
      readonly sender: Sender
    }
  /** Results of work. */
  | { readonly type: 'restored'; readonly key: string; readonly undoVersion: number }
  /** The files are kept for a message, or cannot be. */
  | { readonly type: 'held'; readonly message: string; readonly held: Held }
  | { readonly type: 'started'; readonly run: string }
  | { readonly type: 'opened'; readonly run: string }
  /** The socket to the sandbox has closed or could not be opened. */
  | { readonly type: 'lost'; readonly run: string }
  | { readonly type: 'delivered'; readonly run: string; readonly id: string }
  | { readonly type: 'answered'; readonly run: string; readonly requestId: string }
  | { readonly type: 'interrupted'; readonly run: string }
  /** The program was asked to end. */
  | { readonly type: 'stopped'; readonly run: string }
  | { readonly type: 'pinned'; readonly isPinned: boolean }
  | { readonly type: 'forgotten'; readonly run: string }
  /** The sandbox was asked for the state of the agent. */
  | { readonly type: 'checked'; readonly run: string; readonly agent: AgentState; readonly lastSeq: number }
  | { readonly type: 'events'; readonly run: string; readonly events: readonly NumberedEvent[] }
  /** The sandbox does not know the program any more. */
  | { readonly type: 'gone'; readonly run: string }
  | { readonly type: 'failed'; readonly work: Work; readonly failure: Failure }

/**
 * One conversation. Takes what happens and returns what is to be stored and sent; what has to be done at the sandbox follows
 * from the state (`work`), so that an eviction at any point loses nothing. No I/O, no clock.
 */
export class ConversationState {
  readonly #id: string
  #draft: ConversationDraft

  constructor(id: string, snapshot: ConversationSnapshot = NEW_CONVERSATION) {
    this.#id = id
    this.#draft = new ConversationDraft(id, snapshot, 0)
  }

  get snapshot(): ConversationSnapshot {
    return this.#draft.state
  }

  /** What the agent is doing, for lists. */
  get activity(): Activity {
    return activityOf(this.#draft.state)
  }

  get sandboxStatus(): SandboxStatus {
    return sandboxStatusOf(this.#draft.state)
  }

  /** What clients show beside the entries. */
  get stateFrame(): ConversationStateFrame {
    return stateFrameOf(this.#draft.state)
  }

  /** The files to which clients can restore. */
  get restorePoints(): Extract<LiveFrame, { type: 'restore_points' }> {
    return { type: 'restore_points', ...restorePointsOf(this.#draft.state) }
  }

  /** True while events are read through a socket. */
  get wantsSocket(): boolean {
    return this.#draft.state.program.kind === 'working'
  }

  on(input: ConversationInput, nowMs: number): readonly ConversationEffect[] {
    this.#draft = new ConversationDraft(this.#id, this.#draft.state, nowMs)
    const before = this.sandboxStatus
    const frameBefore = JSON.stringify(this.stateFrame)
    const { turns, undoVersions, restore } = this.#draft.state
    this.#take(input)
    releaseWaiting(this.#draft)
    this.#beginStart()
    const { sandboxStatus, stateFrame } = this
    if (JSON.stringify(stateFrame) !== frameBefore) this.#draft.broadcast(stateFrame)
    const { state } = this.#draft
    if (state.turns !== turns || state.undoVersions !== undoVersions || state.restore !== restore)
      this.#draft.broadcast(this.restorePoints)
    if (sandboxStatus !== before) this.#draft.broadcast({ type: 'connection_status', sandboxStatus })
    return this.#draft.effects
  }

  /** The next thing to do; undefined: nothing, or not before `wakeMs`. */
  work(nowMs: number): Work | undefined {
    return nowMs < this.#draft.state.retryMs ? undefined : nextWork(this.#draft.state)
  }

  /** When something is due without a further input; undefined: never. */
  get wakeMs(): number | undefined {
    const { program, queue, retryMs } = this.#draft.state
    const times = queue.map(({ atMs }) => atMs + QUEUE_MS)
    if (program.kind === 'resting' && program.wakeMs !== null) times.push(program.wakeMs)
    if (nextWork(this.#draft.state) !== undefined) times.push(retryMs)
    return times.length === 0 ? undefined : Math.min(...times)
  }

  #take(input: ConversationInput): void {
    switch (input.type) {
      case 'frame':
        return this.#frame(input.frame, input.sender, input.newId)
      case 'restarted':
        return this.#lost()
      case 'tick':
        return this.#tick()
      case 'restore':
        return requestRestore(this.#draft, input)
      case 'restored':
        return takeRestored(this.#draft, input.key, input.undoVersion)
      case 'held':
        return takeHeld(this.#draft, input.message, input.held)
      case 'started':
        return this.#started(input.run)
      case 'failed':
        return this.#failed(input.work, input.failure)
      case 'pinned':
        return this.#draft.set({ isPinned: input.isPinned })
      case 'forgotten':
        return this.#draft.set({ ended: this.#draft.state.ended.filter((run) => run !== input.run) })
      default:
    }
    // All other inputs are results for one program, which may have been replaced.
    const { program } = this.#draft.state
    if (!('run' in program) || program.run !== input.run) return
    switch (input.type) {
      case 'opened':
        if (program.kind === 'working') this.#draft.set({ program: { ...program, isOpen: true } })
        return
      case 'lost':
        this.#lost()
        return this.#draft.set({ retryMs: this.#draft.nowMs + RETRY_MS })
      case 'delivered':
        return this.#delivered(input.id)
      case 'answered':
        return this.#answered(input.requestId)
      case 'interrupted':
        this.#draft.set({ wantsInterrupt: false })
        return this.#wake()
      case 'stopped':
        this.#draft.set({ wantsClose: false })
        return this.#wake()
      case 'checked':
        return this.#checked(input.agent, input.lastSeq)
      case 'events':
        for (const entry of input.events) this.#event(entry)
        return
      case 'gone':
        return this.#ended(GONE_MESSAGE)
    }
  }

  // Frames of browsers.

  #frame(frame: ClientFrame, sender: Sender, newId: string): void {
    switch (frame.type) {
      case 'start': {
        const { systemPrompt, taskId, projectId, content, id } = frame
        if (!this.#draft.state.isStarted)
          this.#draft.set({
            isStarted: true,
            systemPrompt: systemPrompt ?? null,
            labels: {
              ...(taskId === undefined ? {} : { taskId }),
              ...(projectId === undefined ? {} : { projectId }),
            },
          })
        if (content !== undefined && content !== '')
          takeMessage(this.#draft, { id: id ?? newId, content }, sender)
        return
      }
      case 'message':
        return takeMessage(this.#draft, { ...frame, id: frame.id ?? newId }, sender)
      case 'message_edit':
        return changeWaiting(this.#draft, frame.id, sender, (each) => [{ ...each, content: frame.content }])
      case 'message_remove':
        return changeWaiting(this.#draft, frame.id, sender, () => [])
      case 'message_now':
        return sendNow(this.#draft, frame.id, sender)
      case 'forget_tool': {
        const { allowedTools } = this.#draft.state
        return this.#draft.set({ allowedTools: allowedTools.filter(({ name }) => name !== frame.toolName) })
      }
      case 'permission_response': {
        const { requestId, decision, modifiedInput, message, acceptsEdits, always } = frame
        if (always === true && decision === 'allow') this.#allowAlways(requestId, sender)
        return this.#answer(
          {
            requestId,
            decision,
            by: sender.account,
            ...(modifiedInput === undefined ? {} : { updatedInput: JSON.stringify(modifiedInput) }),
            ...(message === undefined ? {} : { message }),
            ...(acceptsEdits === undefined ? {} : { acceptsEdits }),
          },
          sender,
        )
      }
      case 'ask_user_answer':
        return this.#answer(
          { requestId: frame.requestId, decision: 'allow', by: sender.account, answers: frame.answers },
          sender,
        )
      case 'interrupt':
        return this.#interrupt()
      case 'close':
        if (this.#draft.state.program.kind === 'working' || this.#draft.state.program.kind === 'resting')
          this.#draft.set({ wantsClose: true })
    }
  }

  /** Ends the turn, and drops messages that the agent does not have yet. Messages that wait for its end stay. */
  #interrupt(): void {
    const { program, queue } = this.#draft.state
    switch (program.kind) {
      case 'none':
        return
      case 'starting':
        this.#draft.set({ program: { kind: 'none' }, ended: [...this.#draft.state.ended, program.run] })
        break
      case 'resting':
        if (program.agent !== 'awaiting' && queue.length === 0) return
        this.#draft.set({ wantsInterrupt: true })
        break
      case 'working':
        this.#draft.set({ wantsInterrupt: true })
    }
    this.#draft.set({ queue: [] })
    for (const { id } of queue) this.#draft.canceled(id)
    this.#draft.set({ isPaused: this.#draft.state.waiting.length > 0 })
  }

  /** Allows a tool from now on, and what it asks at the moment. */
  #allowAlways(requestId: string, sender: Sender): void {
    const { requests, allowedTools } = this.#draft.state
    const tool = requests.find((each) => each.requestId === requestId && each.answer === null)?.tool
    if (tool === undefined || allowedTools.some(({ name }) => name === tool)) return
    const allowed = { name: tool, by: sender.account }
    this.#draft.set({ allowedTools: [...allowedTools, allowed].slice(-MAX_ALLOWED_TOOLS) })
    for (const other of requests)
      if (other.tool === tool && other.answer === null && other.requestId !== requestId)
        this.#answer({ requestId: other.requestId, decision: 'allow', by: sender.account }, sender)
  }

  #answer(answer: GivenAnswer, sender: Sender): void {
    const open = this.#draft.state.requests.find(({ requestId }) => requestId === answer.requestId)
    if (open === undefined || open.answer !== null) {
      const message =
        open === undefined
          ? 'Cannot answer the request: it is not open any more'
          : 'Cannot answer the request: it was answered already'
      const frame = { type: 'error', code: 'conflict', message, id: answer.requestId } as const
      this.#draft.send(sender.socket, frame)
      return
    }
    const requests = this.#draft.state.requests.map((each) => (each === open ? { ...each, answer } : each))
    this.#draft.set({ requests })
    const { requestId, decision, answers, message } = answer
    const seq = this.#draft.append({
      type: 'request_resolved',
      requestId,
      outcome: decision,
      by: sender.account,
      byName: sender.name,
      ...(answers === undefined ? {} : { answers }),
      ...(message === undefined ? {} : { message }),
    })
    const { labels } = this.#draft.state
    this.#draft.persist(seq, toPersisted({ kind: 'answer', of: open.kind, answer, labels }))
  }

  // The agent's program.

  /** Starts the program when a message waits and none runs. */
  #beginStart(): void {
    const { program, queue, starts, restore } = this.#draft.state
    const [first] = queue
    if (program.kind !== 'none' || first === undefined || restore !== null) return
    const run = `${this.#id}-${starts + 1}`
    this.#draft.set({ starts: starts + 1, program: { kind: 'starting', run, first: first.id }, retryMs: 0 })
  }

  #started(run: string): void {
    const { program, queue } = this.#draft.state
    if (program.kind !== 'starting' || program.run !== run) return
    const first = queue.find(({ id }) => id === program.first) ?? null
    if (first !== null) this.#draft.broadcast({ type: 'agent_status', status: 'pending' })
    this.#draft.set({
      program: { kind: 'working', run, seq: 0, agent: 'starting', isOpen: false, checkedSeq: null, first },
      queue: queue.filter(({ id }) => id !== program.first),
      turn: { text: '', tokens: this.#draft.state.tokens },
      retryMs: 0,
    })
  }

  #delivered(id: string): void {
    const { queue } = this.#draft.state
    if (queue.some((message) => message.id === id)) this.#draft.noticeSent(id)
    this.#draft.delivered(id)
    this.#wake()
  }

  #answered(requestId: string): void {
    const requests = this.#draft.state.requests.map((each) =>
      each.requestId === requestId ? { ...each, isDelivered: true } : each,
    )
    this.#draft.set({ requests })
    this.#wake()
  }

  /** The agent may have something to do, so its events are read again. */
  #wake(): void {
    const { program } = this.#draft.state
    if (program.kind === 'working') this.#draft.set({ program: { ...program, checkedSeq: null } })
    if (program.kind !== 'resting') return
    const { run, seq, agent } = program
    this.#draft.set({
      program: { kind: 'working', run, seq, agent, isOpen: false, checkedSeq: null, first: null },
    })
  }

  /** Comes to rest when nothing has happened since the last event that was read. */
  #checked(agent: AgentState, lastSeq: number): void {
    const { program, requests } = this.#draft.state
    if (program.kind !== 'working') return
    const { run, seq } = program
    // Further events are on their way; the end of the program is one too.
    if (lastSeq !== seq || !isAtRest(agent))
      return this.#draft.set({ program: { ...program, checkedSeq: seq } })
    // Its end may have come before the response to the request that delivered a message.
    if (agent === 'idle' && this.#draft.state.queue.length === 0) this.#draft.done('end_turn')
    const deadlines = requests.flatMap(({ deadlineMs }) => (deadlineMs === null ? [] : [deadlineMs]))
    const wakeMs = deadlines.length === 0 ? null : Math.min(...deadlines) + DEADLINE_MARGIN_MS
    this.#draft.set({ program: { kind: 'resting', run, seq, agent, wakeMs } })
  }

  #lost(): void {
    const { program } = this.#draft.state
    if (program.kind === 'working') this.#draft.set({ program: { ...program, isOpen: false } })
  }

  #tick(): void {
    const { program, queue } = this.#draft.state
    const late = queue.filter(({ atMs }) => this.#draft.nowMs >= atMs + QUEUE_MS)
    // An attempt to start with it may have succeeded without a response, so that program is ended.
    if (program.kind === 'starting' && late.some(({ id }) => id === program.first))
      this.#draft.set({ program: { kind: 'none' }, ended: [...this.#draft.state.ended, program.run] })
    for (const { id } of late)
      this.#drop(id, 'expired', 'The agent could not be reached in time. Send it again.')
    if (program.kind === 'resting' && program.wakeMs !== null && this.#draft.nowMs >= program.wakeMs)
      this.#wake()
  }

  #failed(work: Work, failure: Failure): void {
    this.#draft.set({ retryMs: this.#draft.nowMs + RETRY_MS })
    switch (work.kind) {
      case 'pin':
        return this.#pinFailed(work.isPinned, failure)
      case 'restore':
        return restoreFailed(this.#draft, failure)
      case 'forget':
        // The sandbox may be gone, and then there is nothing to do.
        if (!failure.retryable) this.#take({ type: 'forgotten', run: work.run })
        return
      case 'start':
        if (failure.code === 'conflict') return this.#blocked(work.run)
        if (!failure.retryable) this.#abandonStart(work.run, failure.message)
        return
      default: {
        const { program } = this.#draft.state
        if ('run' in program && program.run === work.run) this.#agentFailed(work, failure)
      }
    }
  }

  /** Another agent works in the sandbox, so the start is tried again. */
  #blocked(run: string): void {
    const { program } = this.#draft.state
    if (program.kind === 'starting' && program.run === run)
      this.#draft.set({ program: { ...program, isBlocked: true } })
  }

  #pinFailed(isPinned: boolean, { message, retryable }: Failure): void {
    const { program } = this.#draft.state
    if (retryable) return
    if (isPinned && program.kind === 'starting') this.#abandonStart(program.run, message)
    else this.#draft.set({ isPinned })
  }

  #agentFailed(
    work: Exclude<Work, { kind: 'pin' | 'forget' | 'start' | 'restore' }>,
    { code, message, retryable }: Failure,
  ): void {
    if (GONE.has(code)) return this.#ended(GONE_MESSAGE)
    if (work.kind === 'answer' && (code === 'conflict' || !retryable))
      return this.#answered(work.answer.requestId)
    if (code === 'conflict') {
      // It has ended or is ending, and says so in its events.
      if (work.kind === 'interrupt') this.#draft.set({ wantsInterrupt: false })
      if (this.#draft.state.program.kind === 'resting') this.#draft.set({ retryMs: 0 })
      return this.#wake()
    }
    if (!retryable && work.kind === 'deliver') this.#drop(work.message.id, 'failed', message)
  }

  /** Gives up a start: its message, and those after it, are dropped. */
  #abandonStart(run: string, message: string): void {
    this.#draft.set({ program: { kind: 'none' }, ended: [...this.#draft.state.ended, run] })
    for (const { id } of this.#draft.state.queue) this.#drop(id, 'failed', message)
  }

  #drop(id: string, reason: 'expired' | 'failed', message: string): void {
    this.#draft.set({ queue: this.#draft.state.queue.filter((each) => each.id !== id) })
    this.#draft.append({ type: 'message_dropped', id, reason, message })
  }

  /** The program has ended; `problem`: it did not say so itself. */
  #ended(problem: string | null): void {
    const { program, requests, turn, ended } = this.#draft.state
    if (!('run' in program)) return
    const first = program.kind === 'working' ? program.first : null
    const isRefused = problem === null && this.#draft.cannotResume
    for (const { requestId, answer } of requests)
      if (answer === null) this.#draft.resolve(requestId, 'withdrawn')
    this.#draft.set({
      program: { kind: 'none' },
      requests: [],
      wantsInterrupt: false,
      wantsClose: false,
      ended: problem === null ? [...ended, program.run] : ended,
    })
    if (isRefused) {
      // It could not continue its conversation, so the message was not read: a new conversation gets it.
      const again = first === null ? [] : [{ ...first, atMs: this.#draft.nowMs }]
      this.#draft.set({ resume: null, queue: [...again, ...this.#draft.state.queue], turn: null })
      this.#draft.broadcast({ type: 'session_status', status: 'restore_failed' })
      return
    }
    if (turn === null) return
    if (problem !== null) this.#draft.append({ type: 'error', code: 'run_ended', message: problem })
    this.#draft.done(problem === null ? 'end_turn' : 'error')
  }

  #event({ seq, event }: NumberedEvent): void {
    const { program } = this.#draft.state
    if (program.kind !== 'working' || seq <= program.seq) return
    this.#draft.set({ program: { ...program, seq } })
    takeAgentEvent(this.#draft, event, `${program.run}-${seq}`)
    if (event.type === 'complete') this.#ended(null)
  }
}
