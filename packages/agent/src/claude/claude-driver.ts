import { SandwireError } from '@sandwire/protocol'
import type { AgentStart, AgentStop, ApprovalView, MessageView } from '../api.ts'
import { boundText } from '../bound.ts'
import type { AgentDriver, AgentSetting, DriverEffect, DriverInput, Outcome } from '../driver.ts'
import { DriverOutput } from '../driver-output.ts'
import type { AgentState, InputRequest, MessageReceipt, Usage } from '../event.ts'
import type { RecordedInput } from '../journal.ts'
import { isRecord, type Json, numberAt, parseRecord, recordAt, textAt } from '../json.ts'
import { Messages, type SentMessage } from '../messages.ts'
import { Redactor } from '../redact.ts'
import { StopLadder, type StopStep, Watchdog } from '../watchdog.ts'
import { LineMapper } from './line-mapper.ts'
import { boundLine } from './own-line.ts'
import { PermissionRequests } from './permission-requests.ts'
import { MAX_STDERR_CHARS, PIECE, recordedInput } from './recorded-input.ts'
import { initializeLine, interruptLine, messageUuid, settingLine, userLine } from './outgoing.ts'
import { endOfProgram, readReceipt, readRetry, readTurnResult, type TurnResult } from './turn-result.ts'

/** How much of a line that is not JSON is shown. */
const MAX_GARBAGE_CHARS = 2_000

export interface ClaudeDriverOptions {
  readonly start: AgentStart
  /** Absolute path of the folder that events name files in. */
  readonly workspace: string
  /** Wall time at which `nowMs` is zero. */
  readonly epochMs: number
  /** 20 random hex digits: makes the ids of messages unique across conversations. */
  readonly nonce: string
}

/** Errors of the model API after which trying again is useless. */
const FINAL_API_ERRORS: readonly string[] = ['authentication_failed', 'billing_error']

/** Events of partial messages that state how many tokens were used. */
const COUNTING_EVENTS: readonly string[] = ['message_start', 'message_delta']

/** Speaks Claude Code's stream-json over its stdin and stdout. */
export class ClaudeDriver implements AgentDriver {
  readonly #options: ClaudeDriverOptions
  readonly #redactor: Redactor
  readonly #mapper: LineMapper
  readonly #output: DriverOutput
  readonly #permissions: PermissionRequests
  readonly #messages = new Messages()
  /** Changed before the program was started. */
  readonly #settings: AgentSetting[] = []
  #watchdog: Watchdog | undefined
  #ladder: StopLadder | undefined
  #isInTurn = false
  /** Stdin was closed, or is to be closed by the ladder. */
  #isInputEnded = false
  #wasInterrupted = false
  #requests = 0
  #uuids = 0
  #result: TurnResult | undefined
  #outcome: Outcome | undefined
  #stopping: AgentStop | undefined
  #agentSessionId: string | null = null
  #model: string | null = null
  /** What the journal stores of the line that is being handled. */
  #recorded: RecordedInput | undefined

  constructor(options: ClaudeDriverOptions) {
    this.#options = options
    this.#redactor = new Redactor(options.start.secrets)
    this.#mapper = new LineMapper(this.#redactor, options.workspace)
    this.#output = new DriverOutput(this.#redactor)
    const { start, epochMs } = options
    this.#permissions = new PermissionRequests({ start, epochMs, output: this.#output })
  }

  get state(): AgentState {
    return this.#output.state
  }

  get outcome(): Outcome | undefined {
    return this.#outcome
  }

  get stopping(): AgentStop | undefined {
    return this.#stopping
  }

  get usage(): Usage {
    return this.#mapper.usage.total
  }

  get agentSessionId(): string | null {
    return this.#agentSessionId
  }

  get model(): string | null {
    return this.#model
  }

  get pendingApprovals(): readonly InputRequest[] {
    return this.#permissions.pending
  }

  get announcedFiles(): ReadonlyMap<string, 'create' | 'modify'> {
    return this.#mapper.announcedFiles
  }

  get deadlineMs(): number | undefined {
    if (this.#outcome !== undefined) return undefined
    const deadlines = [
      this.#ladder === undefined ? this.#watchdog?.deadlineMs : this.#ladder.deadlineMs,
      this.#permissions.deadlineMs,
    ].filter((ms) => ms !== undefined)
    return deadlines.length === 0 ? undefined : Math.min(...deadlines)
  }

  messageView(id: string): MessageView | undefined {
    return this.#messages.view(id)
  }

  approvalView(requestId: string): ApprovalView | undefined {
    return this.#permissions.view(requestId)
  }

  on(input: DriverInput, nowMs: number): readonly DriverEffect[] {
    if (this.#outcome !== undefined) {
      this.#handleLate(input)
      return this.#output.take()
    }
    this.#recorded = undefined
    this.#handle(input, nowMs)
    const effects = this.#output.take()
    const recorded = this.#recorded ?? recordedInput(input, effects, this.#redactor)
    return recorded === undefined ? effects : [{ kind: 'record', input: recorded }, ...effects]
  }

  /** After the end: repeated commands are answered as before, new ones are refused. */
  #handleLate(input: DriverInput): void {
    if (input.kind === 'approval') return this.#permissions.approve(input)
    const isRepeated = input.kind === 'message' && this.#messages.isKnown(input)
    if (['message', 'setting', 'interrupt'].includes(input.kind) && !isRepeated) throw ended()
  }

  #handle(input: DriverInput, nowMs: number): void {
    switch (input.kind) {
      case 'started':
        return this.#started(nowMs)
      case 'not_started':
        return this.#notStarted(input.message)
      case 'line':
        return this.#line(input.text, input.isCut === true, nowMs)
      case 'stderr':
        return this.#stderr(input.text, nowMs)
      case 'exit':
        return this.#end(input)
      case 'tick':
        return this.#tick(nowMs)
      case 'message':
        return this.#message(input, nowMs)
      case 'approval':
        this.#permissions.approve(input)
        this.#watchdog?.alive(nowMs)
        return this.#updateState(nowMs)
      case 'setting':
        if (this.#isInputEnded || this.#ladder !== undefined || this.#stopping !== undefined) throw ended()
        if (this.#watchdog !== undefined) return this.#set(input.setting)
        this.#settings.push(input.setting)
        return undefined
      case 'interrupt':
        return this.#interrupt(nowMs)
      case 'stop':
        return this.#stop({ reason: input.reason, message: input.message }, nowMs)
    }
  }

  #started(nowMs: number): void {
    if (this.#watchdog !== undefined) return
    this.#watchdog = new Watchdog(this.#options.start.limits, nowMs)
    this.#enter('starting', nowMs)
    // Stopped before it started.
    if (this.#stopping !== undefined) return this.#startLadder('end_input', nowMs)
    this.#output.write(initializeLine())
    for (const setting of this.#settings) this.#set(setting)
    const { task } = this.#options.start
    if (task !== '') this.#output.write(userLine(task, this.#uuid()))
    for (const { text, content, uuid } of this.#messages.open)
      this.#output.write(userLine(content ?? text, uuid))
    this.#isInTurn = task !== '' || this.#messages.hasOpen
    if (!this.#isInTurn) this.#rest(nowMs)
  }

  #set(setting: AgentSetting): void {
    this.#output.write(settingLine(this.#requestId(), setting))
  }

  #notStarted(message: string): void {
    this.#stopping ??= { reason: 'failed', message }
    this.#end({ code: null, signal: null })
  }

  #line(text: string, isCut: boolean, nowMs: number): void {
    this.#watchdog?.alive(nowMs)
    if (isCut) {
      const redacted = this.#redactor.text(text)
      this.#recorded = { kind: 'line', text: redacted, isCut }
      const shown = boundText(redacted, 200).text
      return this.#output.warn(`A line of the agent was too long and was dropped. It begins with: ${shown}`)
    }
    if (text.trim() === '') return
    const raw = parseRecord(text)
    if (raw === undefined) {
      const shown = boundText(this.#redactor.text(text), MAX_GARBAGE_CHARS).text
      this.#recorded = { kind: 'line', text: shown }
      return this.#output.emit({ type: 'stderr', data: `${shown}\n` })
    }
    const type = textAt(raw, 'type')
    // Redacted piece by piece.
    if (type === 'stream_event') return this.#partial(raw, nowMs)
    const line = this.#record(raw)
    // Answered as it came.
    if (type === 'control_request') return this.#controlRequest(raw, line, nowMs)
    this.#report(type ?? '', line, nowMs)
  }

  /** The line as it is stored and shown. */
  #record(raw: Json): Json {
    const redacted = this.#redactor.value(raw)
    const line = boundLine(isRecord(redacted) ? redacted : {})
    this.#recorded = { kind: 'line', line }
    return line
  }

  #partial(line: Json, nowMs: number): void {
    // Counts of tokens; the whole message repeats everything else.
    const type = textAt(recordAt(line, 'event'), 'type') ?? ''
    if (COUNTING_EVENTS.includes(type)) this.#record(line)
    else if (!this.#isInTurn) this.#recorded = PIECE
    this.#working(nowMs)
    this.#output.push(...this.#mapper.partial(line))
    this.#checkTurns(nowMs)
  }

  #report(type: string, line: Json, nowMs: number): void {
    switch (type) {
      case 'system':
        return this.#system(line, nowMs)
      case 'assistant':
        this.#working(nowMs)
        this.#output.emit(...this.#mapper.assistant(line))
        return this.#checkTurns(nowMs)
      case 'user':
        return this.#output.emit(...this.#mapper.user(line))
      case 'command_lifecycle':
        return this.#lifecycle(line, nowMs)
      case 'control_cancel_request':
        this.#permissions.withdraw(textAt(line, 'request_id') ?? '')
        return this.#updateState(nowMs)
      case 'result':
        return this.#turnEnded(line, nowMs)
      default:
        // Other lines, among them answers to control requests, report nothing that an event shows.
        return undefined
    }
  }

  #system(line: Json, nowMs: number): void {
    switch (line['subtype']) {
      case 'init': {
        const session = textAt(line, 'session_id')
        const model = textAt(line, 'model') ?? ''
        if (session === undefined) return
        const isSame = session === this.#agentSessionId && model === this.#model
        this.#agentSessionId = session
        this.#model = model
        this.#working(nowMs)
        if (isSame) return
        const version = textAt(line, 'claude_code_version') ?? ''
        return this.#output.emit({
          type: 'status',
          status: 'session',
          agentSessionId: session,
          model,
          version,
        })
      }
      case 'api_retry': {
        this.#output.emit(readRetry(line))
        const error = textAt(line, 'error') ?? ''
        if (FINAL_API_ERRORS.includes(error))
          this.#stop({ reason: 'failed', message: `The model API refused the run: ${error}` }, nowMs)
        return
      }
      default:
    }
  }

  #lifecycle(line: Json, nowMs: number): void {
    const receipt = readReceipt(line)
    if (receipt === undefined) return
    const hasChanged = this.#settle(receipt, ({ uuid }) => uuid === textAt(line, 'command_uuid'))
    if (hasChanged && !this.#isInTurn) this.#rest(nowMs)
  }

  #stderr(text: string, nowMs: number): void {
    this.#watchdog?.alive(nowMs)
    if (text !== '')
      this.#output.emit({ type: 'stderr', data: boundText(this.#redactor.text(text), MAX_STDERR_CHARS).text })
  }

  #end({ code, signal }: { readonly code: number | null; readonly signal: string | null }): void {
    this.#permissions.withdraw()
    this.#settle('canceled', () => true)
    const end =
      this.#stopping === undefined
        ? endOfProgram(code, signal, this.#isInTurn ? 'in turn' : this.#result)
        : { status: this.#stopping.reason, message: this.#stopping.message }
    this.#outcome = {
      ...end,
      summary: this.#result?.summary ?? '',
      structured: this.#result?.structured ?? null,
      exitCode: code,
      signal,
    }
    this.#output.usage(this.usage)
    this.#output.enter('collecting')
  }

  /** The program works on a turn, perhaps on one that it started by itself for a queued message. */
  #working(nowMs: number): void {
    if (this.#isInputEnded) return
    this.#isInTurn = true
    this.#updateState(nowMs)
  }

  #turnEnded(line: Json, nowMs: number): void {
    this.#isInTurn = false
    const cost = numberAt(line, 'total_cost_usd')
    if (cost !== undefined) this.#mapper.usage.cost(cost)
    this.#result = readTurnResult(line)
    this.#output.usage(this.usage)
    // Folded into the turn that has ended; a program that reports receipts has said so already.
    this.#settle('completed', ({ receipt }) => receipt === 'started')
    if (this.#ladder?.isInterrupting === true) {
      this.#ladder.skipWait(nowMs)
      return this.#climb(nowMs)
    }
    const { maxBudgetMicroUsd } = this.#options.start.limits
    if (maxBudgetMicroUsd !== null && (cost ?? 0) * 1_000_000 >= maxBudgetMicroUsd)
      this.#stop({ reason: 'budget', message: 'The run has spent its budget' }, nowMs)
    // Without a session, no message can be answered.
    if (this.#agentSessionId === null && this.#result.status === 'failed')
      this.#stop({ reason: 'failed', message: this.#result.message ?? '' }, nowMs)
    this.#rest(nowMs)
  }

  /** After a turn: ends the run, or waits for what comes next. */
  #rest(nowMs: number): void {
    if (this.#ladder !== undefined || this.#isInputEnded || this.#output.state === 'preparing') return
    if (this.#messages.hasOpen) return this.#updateState(nowMs)
    if (this.#options.start.isInteractive || this.#wasInterrupted) {
      this.#updateState(nowMs)
      const prompt = this.#wasInterrupted
        ? 'The agent was interrupted. Send a message to continue.'
        : 'The agent waits for a message.'
      return this.#output.emit({
        type: 'awaiting_input',
        prompt,
        requestId: `turn-${this.#mapper.usage.turns}`,
        kind: 'message',
        deadlineMs: null,
      })
    }
    this.#endInput(nowMs)
  }

  #endInput(nowMs: number): void {
    this.#isInputEnded = true
    this.#output.push({ kind: 'end_input' })
    this.#watchdog?.enter('finishing', nowMs)
    this.#output.enter('ending')
  }

  /** Ends a run that made more model requests than it may. */
  #checkTurns(nowMs: number): void {
    const { maxTurns } = this.#options.start.limits
    if (maxTurns === null || this.#mapper.usage.turns <= maxTurns) return
    this.#stop({ reason: 'budget', message: `The run reached its limit of ${maxTurns} turns` }, nowMs)
  }

  #message(message: Extract<DriverInput, { kind: 'message' }>, nowMs: number): void {
    if (this.#messages.isKnown(message)) return
    if (this.#isInputEnded || this.#ladder !== undefined || this.#stopping !== undefined) throw ended()
    const sent = this.#messages.add(message, this.#uuid())
    this.#output.message(sent)
    // Before the start it waits for it.
    if (this.#watchdog === undefined) return
    this.#output.write(userLine(sent.content ?? sent.text, sent.uuid))
    this.#wasInterrupted = false
    this.#watchdog.alive(nowMs)
    this.#working(nowMs)
  }

  /** The turn goes on until the program reports its end, but asks for nothing any more. */
  #interrupt(nowMs: number): void {
    if (this.#isInputEnded || this.#ladder !== undefined) throw ended()
    if (!this.#isInTurn) return
    this.#wasInterrupted = true
    this.#permissions.withdraw()
    this.#output.write(interruptLine(this.#requestId()))
    this.#updateState(nowMs)
  }

  /** The first reason stays. */
  #stop(stop: AgentStop, nowMs: number): void {
    if (this.#ladder !== undefined || this.#stopping !== undefined) return
    this.#stopping = stop
    this.#output.emit({ type: 'status', status: 'stopping', reason: stop.reason, message: stop.message })
    this.#permissions.withdraw()
    // Before the start, the program is not started at all.
    if (this.#watchdog === undefined) return
    if (this.#isInputEnded) return this.#startLadder('terminate', nowMs)
    this.#startLadder(this.#isInTurn ? 'interrupt' : 'end_input', nowMs)
  }

  #startLadder(first: StopStep, nowMs: number): void {
    this.#ladder = new StopLadder(this.#options.start.limits.stepMs, first, nowMs)
    this.#output.enter('ending')
    this.#climb(nowMs)
  }

  #tick(nowMs: number): void {
    this.#permissions.expire(nowMs)
    if (this.#ladder !== undefined) return this.#climb(nowMs)
    this.#updateState(nowMs)
    const overrun = this.#watchdog?.check(nowMs)
    if (overrun === undefined) return
    const { kind, message } = overrun
    if (kind === 'timeout') return this.#stop({ reason: 'timed_out', message }, nowMs)
    if (kind === 'no_message' && this.#wasInterrupted)
      return this.#stop({ reason: 'aborted', message }, nowMs)
    // The work is done, so the run keeps the status of its last turn.
    this.#output.warn(message)
    this.#startLadder(kind === 'no_exit' ? 'terminate' : 'end_input', nowMs)
  }

  #climb(nowMs: number): void {
    const step = this.#ladder?.due(nowMs)
    switch (step) {
      case 'interrupt':
        return this.#output.write(interruptLine(this.#requestId()))
      case 'end_input':
        this.#isInputEnded = true
        this.#output.push({ kind: 'end_input' })
        return
      case 'terminate':
        this.#output.push({ kind: 'signal', name: 'SIGTERM' })
        return
      case 'kill':
        this.#output.push({ kind: 'signal', name: 'SIGKILL' })
        return
      case undefined:
    }
  }

  #controlRequest(line: Json, shownLine: Json, nowMs: number): void {
    const isEnding = this.#ladder !== undefined || (this.#isInTurn && this.#wasInterrupted)
    this.#permissions.requested(line, shownLine, isEnding, nowMs)
    if (this.#permissions.pending.length > 0) this.#working(nowMs)
  }

  #updateState(nowMs: number): void {
    if (this.#watchdog === undefined || this.#isInputEnded || this.#ladder !== undefined) return
    if (this.#permissions.pending.length > 0) return this.#enter('awaiting', nowMs)
    // Until its first line, the program is starting.
    if (this.#isInTurn) return this.#enter(this.#agentSessionId === null ? 'starting' : 'turn', nowMs)
    this.#enter(this.#messages.hasOpen ? 'turn' : 'idle', nowMs)
  }

  #enter(state: 'starting' | 'turn' | 'awaiting' | 'idle', nowMs: number): void {
    this.#watchdog?.enter(state === 'awaiting' || state === 'idle' ? state : 'working', nowMs)
    this.#output.enter(state)
  }

  #settle(receipt: MessageReceipt, matches: (message: SentMessage) => boolean): boolean {
    const settled = this.#messages.settle(receipt, matches)
    for (const message of settled) this.#output.message(message)
    return settled.length > 0
  }

  #requestId(): string {
    this.#requests += 1
    return `sandwire-${this.#requests}`
  }

  #uuid(): string {
    this.#uuids += 1
    return messageUuid(this.#options.nonce, this.#uuids)
  }
}

function ended(): SandwireError {
  return new SandwireError('conflict', 'Cannot reach the agent: the run is ending or has ended')
}
