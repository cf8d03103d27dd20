import { backOffMs, type BackOffBounds, DEFAULT_BACK_OFF } from '../back-off.ts'
import type { ClientMessage, Role } from '../client-frames.ts'
import { decodeServer, encode, type WireMessage } from '../codec.ts'
import type { StreamName } from '../data-frame.ts'
import { ERRORS, type ErrorCode, isErrorCode, SandwireError } from '../errors.ts'
import { ACK_BYTES, ACK_DELAY_MS, CLIENT_INPUT_BYTES, HEARTBEAT_MS } from '../limits.ts'
import type { Exit, ServerMessage, Welcome } from '../server-frames.ts'
import { PROTOCOL_VERSION } from '../version.ts'
import type { AttemptId, ClientEffect, ClientStatus } from './effects.ts'
import { Heartbeat } from './heartbeat.ts'
import { SendLog, type UnplacedMessage } from './send-log.ts'

export interface ClientOptions {
  /** Secret of this attachment: 32 lower-case hex digits. */
  readonly identity: string
  /** Most output bytes in flight. */
  readonly windowBytes: number
  readonly cols: number
  readonly rows: number
  readonly role?: Role
  readonly name?: string
  readonly env?: Readonly<Record<string, string>>
  /** How long to try before the first welcome. */
  readonly connectForMs: number
  /** How long to try to come back after a cut. */
  readonly retryForMs: number
  readonly backOff?: BackOffBounds
  readonly maxInputBytes?: number
  readonly heartbeatMs?: number
}

/** Where the conversation is. */
type Phase =
  | { readonly is: 'idle' }
  /** The connection is being opened. */
  | { readonly is: 'connecting'; readonly attempt: AttemptId }
  /** Open, hello sent, welcome awaited. */
  | { readonly is: 'greeting'; readonly attempt: AttemptId }
  | { readonly is: 'attached'; readonly attempt: AttemptId }
  | { readonly is: 'waiting'; readonly untilMs: number }
  /** Everything has arrived but is not consumed; no connection is needed any more. */
  | { readonly is: 'finishing' }
  | { readonly is: 'over' }

/** A screen that is arriving. */
interface ArrivingSnapshot {
  readonly head: Extract<ServerMessage, { type: 'snapshot' }>
  readonly bytes: Uint8Array
  filled: number
}

/** How long a connection may take to open and be welcomed. */
const ATTEMPT_MS = 15_000

/**
 * One attachment as the client sees it, without any I/O: every method takes the time and returns what is to be
 * done. It reconnects until the table of errors or its deadline says stop, and resumes both streams exactly.
 */
export class ClientSession {
  readonly #options: ClientOptions
  readonly #sendLog = new SendLog()
  readonly #heartbeat: Heartbeat
  #effects: ClientEffect[] = []
  #phase: Phase = { is: 'idle' }
  #attempts = 0
  /** Attempts since the last welcome. */
  #failures = 0
  #session: string | undefined
  #role: Role = 'viewer'
  #size: { cols: number; rows: number }
  /** Size the server last confirmed or was sent; a driver keeps it equal to `#size`. */
  #sizeSent: { cols: number; rows: number } | undefined
  /** Output received, and consumed. */
  #received = 0
  #consumed = 0
  /** What the last ack said. */
  #ackSent = 0
  #ackDueMs: number | undefined
  /** A gap or a screen moved the stream: acknowledge as soon as everything is consumed. */
  #isAckUrgent = false
  /** Stretches of the stream that have no bytes, ahead of what is consumed. */
  #skips: { from: number; to: number }[] = []
  #snapshot: ArrivingSnapshot | undefined
  /** Input may be sent up to this offset. */
  #inputLimit = 0
  #inputWindow = 0
  #isInputClosed = false
  /** Set when a write was turned away; cleared by the effect `writable`. */
  #isWriterWaiting = false
  #giveUpAtMs = 0
  #attemptDeadlineMs: number | undefined
  #exit: Exit | undefined

  constructor(options: ClientOptions) {
    this.#options = options
    this.#size = { cols: options.cols, rows: options.rows }
    this.#heartbeat = new Heartbeat(options.heartbeatMs ?? HEARTBEAT_MS, options.windowBytes)
  }

  get received(): number {
    return this.#received
  }

  get consumedOffset(): number {
    return this.#consumed
  }

  get role(): Role {
    return this.#role
  }

  get session(): string | undefined {
    return this.#session
  }

  get heldInputBytes(): number {
    return this.#sendLog.heldBytes
  }

  get isInputEmpty(): boolean {
    return this.#sendLog.isEmpty
  }

  start(nowMs: number): readonly ClientEffect[] {
    if (this.#phase.is !== 'idle') return []
    this.#giveUpAtMs = nowMs + this.#options.connectForMs
    this.#connect(nowMs)
    return this.#take()
  }

  /** The connection is open. */
  opened(attempt: AttemptId, nowMs: number): readonly ClientEffect[] {
    if (this.#phase.is !== 'connecting' || this.#phase.attempt !== attempt) return []
    this.#phase = { is: 'greeting', attempt }
    this.#heartbeat.opened(nowMs)
    const { identity, windowBytes, role, name, env } = this.#options
    const isNew = this.#session === undefined
    this.#send({
      type: 'hello',
      version: PROTOCOL_VERSION,
      identity,
      resuming: !isNew,
      received: this.#received,
      window: windowBytes,
      ...this.#size,
      ...(role === undefined ? {} : { role }),
      ...(name === undefined ? {} : { name }),
      ...(env === undefined || !isNew ? {} : { env }),
    })
    return this.#take()
  }

  /** A message came in. */
  receive(attempt: AttemptId, wire: WireMessage, nowMs: number): readonly ClientEffect[] {
    if (!this.#isCurrent(attempt)) return []
    this.#heartbeat.heard(typeof wire === 'string' ? wire.length : wire.byteLength, nowMs)
    const frame = decodeServer(wire)
    if (frame === undefined) this.#fail(new SandwireError('bad_frame', 'Cannot decode what the server sent'))
    else if (frame.kind === 'data') this.#data(frame.stream, frame.payload, nowMs)
    else this.#message(frame.message, nowMs)
    this.#flush()
    return this.#take()
  }

  /** The connection is gone, or could not be opened; `refusal` is what the server said about it, if it could be learnt. */
  closed(
    attempt: AttemptId,
    refusal: { code: ErrorCode; message: string } | undefined,
    nowMs: number,
  ): readonly ClientEffect[] {
    if (this.#isCurrent(attempt)) this.#lost(refusal, nowMs)
    return this.#take()
  }

  /** The consumer is done with everything up to `end`. */
  consumed(end: number, nowMs: number): readonly ClientEffect[] {
    this.#consumed = Math.max(this.#consumed, end)
    this.#passSkips()
    this.#considerAck(nowMs)
    this.#finishWhenDone()
    return this.#take()
  }

  /** True when `write` takes more now. */
  get canWrite(): boolean {
    return this.#sendLog.heldBytes < (this.#options.maxInputBytes ?? CLIENT_INPUT_BYTES)
  }

  /** Takes input. The caller waits for `writable` while `canWrite` is false. */
  write(bytes: Uint8Array): readonly ClientEffect[] {
    if (this.#phase.is === 'over') return []
    const isRefused = this.#phase.is === 'attached' && this.#role === 'viewer'
    if (this.#isInputClosed)
      this.#effects.push({ do: 'inputLost', bytes: bytes.byteLength, why: 'stdinClosed' })
    else if (isRefused) this.#effects.push({ do: 'inputLost', bytes: bytes.byteLength, why: 'role' })
    else this.#sendLog.write(bytes)
    this.#isWriterWaiting = !this.canWrite
    this.#flush()
    return this.#take()
  }

  /** Queues end of input, a signal or a resize. */
  control(message: UnplacedMessage): readonly ClientEffect[] {
    if (this.#phase.is === 'over') return []
    if (message.type === 'resize') {
      this.#size = { cols: message.cols, rows: message.rows }
      this.#syncSize()
    } else if (this.#phase.is !== 'attached' || this.#role === 'driver') this.#sendLog.control(message)
    this.#flush()
    return this.#take()
  }

  /** Asks for, takes or hands over the lease. Lost without harm when there is no connection. */
  lease(message: Extract<ClientMessage, { type: 'take' | 'ask' | 'give' }>): readonly ClientEffect[] {
    if (this.#phase.is === 'attached') this.#send(message)
    return this.#take()
  }

  /** Leaves the session on purpose; it lives on for its keep. */
  detach(): readonly ClientEffect[] {
    if (this.#phase.is === 'over') return []
    if (this.#phase.is === 'attached') this.#send({ type: 'detach' })
    this.#end({ is: 'detached' })
    return this.#take()
  }

  tick(nowMs: number): readonly ClientEffect[] {
    if (this.#phase.is === 'waiting' && nowMs >= this.#phase.untilMs) this.#connect(nowMs)
    if (this.#ackDueMs !== undefined && nowMs >= this.#ackDueMs) this.#ack()
    if (this.#attemptDeadlineMs !== undefined && nowMs >= this.#attemptDeadlineMs) {
      this.#lost({ code: 'link_lost', message: 'The connection did not open in time' }, nowMs)
    }
    if (this.#phase.is === 'attached') this.#beat(nowMs)
    return this.#take()
  }

  /** When `tick` is next needed. */
  nextTickMs(): number | undefined {
    const times = [this.#ackDueMs, this.#attemptDeadlineMs]
    if (this.#phase.is === 'waiting') times.push(this.#phase.untilMs)
    if (this.#phase.is === 'attached') times.push(this.#heartbeat.nextMs)
    const known = times.filter((time) => time !== undefined)
    return known.length === 0 ? undefined : Math.min(...known)
  }

  /** Randomness for the next delay, in [0, 1); set by the driver so that the core has none of its own. */
  jitter: () => number = () => 0.5

  #isCurrent(attempt: AttemptId): boolean {
    const phase = this.#phase
    return (
      (phase.is === 'connecting' || phase.is === 'greeting' || phase.is === 'attached') &&
      phase.attempt === attempt
    )
  }

  #connect(nowMs: number): void {
    this.#attempts += 1
    this.#phase = { is: 'connecting', attempt: this.#attempts }
    this.#attemptDeadlineMs = nowMs + ATTEMPT_MS
    if (this.#session === undefined) this.#status({ is: 'connecting', attempt: this.#failures + 1 })
    this.#effects.push({ do: 'connect', attempt: this.#attempts, session: this.#session })
  }

  #message(message: ServerMessage, nowMs: number): void {
    if (this.#phase.is === 'greeting' && message.type !== 'welcome' && message.type !== 'error') {
      this.#fail(new SandwireError('bad_frame', `Cannot take ${message.type} before welcome`))
      return
    }
    switch (message.type) {
      case 'welcome':
        this.#welcome(message, nowMs)
        return
      case 'ack':
        this.#inputAcked(message.input, message.seq)
        return
      case 'gap':
        this.#gap(message.from, message.to, nowMs)
        return
      case 'snapshot':
        this.#snapshot = { head: message, bytes: new Uint8Array(message.bytes), filled: 0 }
        this.#finishSnapshot()
        return
      case 'resized':
        this.#effects.push({ do: 'resized', cols: message.cols, rows: message.rows })
        return
      case 'stdinClosed':
        this.#stdinClosed(message.at)
        return
      case 'exit':
        this.#exited(message)
        return
      case 'error':
        this.#error(message, nowMs)
        return
      case 'role':
        this.#roleChanged(message)
        return
      case 'presence':
        this.#effects.push({ do: 'presence', presence: message })
        return
      case 'asked':
        this.#effects.push({ do: 'asked', by: message.by })
        return
      case 'pong': {
        const ms = this.#heartbeat.pong(message.id, nowMs)
        if (ms !== undefined) this.#effects.push({ do: 'roundTrip', ms })
        return
      }
    }
  }

  #welcome(welcome: Welcome, nowMs: number): void {
    if (this.#phase.is !== 'greeting') return
    const isResume = this.#session !== undefined
    if (isResume && (welcome.session !== this.#session || welcome.output !== this.#received)) {
      this.#fail(
        new SandwireError(
          'desync',
          `Cannot resume at ${this.#received}: the server continues at ${welcome.output}`,
        ),
      )
      return
    }
    this.#phase = { is: 'attached', attempt: this.#phase.attempt }
    this.#attemptDeadlineMs = undefined
    this.#failures = 0
    this.#session = welcome.session
    this.#inputWindow = welcome.inputWindow
    this.#inputLimit = welcome.input.at
    this.#received = welcome.output
    // Acks may have been lost with the old connection, so the state is told anew.
    this.#ackSent = 0
    this.#isAckUrgent = true
    this.#snapshot = undefined
    this.#sizeSent = isResume ? this.#sizeSent : { ...this.#size }
    this.#takeRole(welcome.role, welcome.input)
    if (this.#phase.is === 'attached' && !this.#rewind(welcome)) return
    this.#heartbeat.welcomed(nowMs)
    this.#status({ is: 'attached', session: welcome.session, role: welcome.role })
    this.#considerAck(nowMs)
  }

  #rewind(welcome: Welcome): boolean {
    if (this.#sendLog.rewind(welcome.input.at, welcome.input.seq)) return true
    this.#fail(new SandwireError('desync', `Cannot resume input: the server has taken ${welcome.input.at}`))
    return false
  }

  #inputAcked(at: number, seq: number): void {
    if (!this.#sendLog.confirm(at, seq)) {
      this.#fail(new SandwireError('desync', `The server acknowledged input ${at} that was not sent`))
      return
    }
    this.#inputLimit = Math.max(this.#inputLimit, at + this.#inputWindow)
    if (!this.#isWriterWaiting || !this.canWrite) return
    this.#isWriterWaiting = false
    this.#effects.push({ do: 'writable' })
  }

  #data(stream: StreamName, payload: Uint8Array, nowMs: number): void {
    if (this.#phase.is !== 'attached') {
      this.#fail(new SandwireError('bad_frame', 'Cannot take output before welcome'))
      return
    }
    if (stream === 'snapshot') {
      this.#fillSnapshot(payload)
      return
    }
    if (this.#snapshot !== undefined) {
      this.#fail(new SandwireError('bad_frame', 'Cannot take output inside a snapshot'))
      return
    }
    this.#received += payload.byteLength
    this.#effects.push({ do: 'output', stream, bytes: payload, end: this.#received })
    this.#ackDueMs ??= nowMs + ACK_DELAY_MS
  }

  #gap(from: number, to: number, nowMs: number): void {
    if (from !== this.#received || to < from) {
      this.#fail(new SandwireError('desync', `Cannot skip from ${from}: ${this.#received} is next`))
      return
    }
    this.#effects.push({ do: 'gap', from, to })
    this.#skips.push({ from, to })
    this.#received = to
    this.#isAckUrgent = true
    this.#passSkips()
    this.#considerAck(nowMs)
  }

  /** A gap counts as consumed once everything before it is. */
  #passSkips(): void {
    let skip = this.#skips[0]
    while (skip !== undefined && skip.from <= this.#consumed) {
      this.#consumed = Math.max(this.#consumed, skip.to)
      this.#skips.shift()
      skip = this.#skips[0]
    }
  }

  #fillSnapshot(payload: Uint8Array): void {
    const arriving = this.#snapshot
    if (arriving === undefined || arriving.filled + payload.byteLength > arriving.bytes.byteLength) {
      this.#fail(new SandwireError('bad_frame', 'Cannot take a snapshot that was not announced'))
      return
    }
    arriving.bytes.set(payload, arriving.filled)
    arriving.filled += payload.byteLength
    this.#finishSnapshot()
  }

  #finishSnapshot(): void {
    const arriving = this.#snapshot
    if (arriving === undefined || arriving.filled < arriving.bytes.byteLength) return
    this.#snapshot = undefined
    const { at, cols, rows, exact } = arriving.head
    this.#received = at
    this.#isAckUrgent = true
    this.#effects.push({ do: 'snapshot', at, cols, rows, exact, bytes: arriving.bytes })
  }

  #considerAck(nowMs: number): void {
    if (this.#phase.is !== 'attached') return
    const unacked = this.#consumed - this.#ackSent
    if (unacked <= 0) return
    if (unacked >= ACK_BYTES || this.#isAckUrgent) this.#ack()
    else this.#ackDueMs ??= nowMs + ACK_DELAY_MS
  }

  #ack(): void {
    this.#ackDueMs = undefined
    if (this.#phase.is !== 'attached' || this.#consumed <= this.#ackSent) return
    this.#ackSent = this.#consumed
    if (this.#consumed === this.#received) this.#isAckUrgent = false
    this.#send({ type: 'ack', output: this.#consumed })
  }

  #stdinClosed(at: number): void {
    if (this.#isInputClosed) return
    this.#isInputClosed = true
    const lost = Math.max(0, this.#sendLog.sentAt - at) + this.#sendLog.dropQueuedBytes()
    if (lost > 0) this.#effects.push({ do: 'inputLost', bytes: lost, why: 'stdinClosed' })
    if (this.#isWriterWaiting) this.#effects.push({ do: 'writable' })
    this.#isWriterWaiting = false
  }

  #takeRole(role: Role, input: { at: number; seq: number }): void {
    const isNarrower = role === 'viewer' || (role === 'collaborator' && this.#role === 'driver')
    this.#role = role
    if (role === 'collaborator') this.#sendLog.dropQueuedControls()
    if (isNarrower) {
      this.#sizeSent = undefined
      const lost = this.#sendLog.discard(input.at, input.seq)
      if (lost > 0) this.#effects.push({ do: 'inputLost', bytes: lost, why: 'role' })
      if (this.#isWriterWaiting) this.#effects.push({ do: 'writable' })
      this.#isWriterWaiting = false
    }
    this.#syncSize()
  }

  #roleChanged(message: Extract<ServerMessage, { type: 'role' }>): void {
    this.#takeRole(message.role, message.input)
    this.#send({ type: 'roleSeen', epoch: message.epoch })
    if (this.#session !== undefined)
      this.#status({ is: 'attached', session: this.#session, role: message.role })
  }

  /** A driver's terminal decides the size. */
  #syncSize(): void {
    const { cols, rows } = this.#size
    if (this.#role !== 'driver' || (this.#sizeSent?.cols === cols && this.#sizeSent.rows === rows)) return
    this.#sizeSent = { cols, rows }
    this.#sendLog.control({ type: 'resize', cols, rows })
  }

  #error(message: Extract<ServerMessage, { type: 'error' }>, nowMs: number): void {
    if (!message.fatal) {
      this.#effects.push({ do: 'warning', code: message.code, message: message.message })
      return
    }
    const code = isErrorCode(message.code) ? message.code : 'internal'
    this.#lost({ code, message: message.message }, nowMs)
  }

  #exited(exit: Exit): void {
    if (exit.outputEnd !== this.#received) {
      this.#fail(
        new SandwireError(
          'desync',
          `The process ended at ${exit.outputEnd}, but ${this.#received} was received`,
        ),
      )
      return
    }
    this.#exit = exit
    this.#finishWhenDone()
  }

  /** The exit is told once every byte before it has been consumed. */
  #finishWhenDone(): void {
    if (this.#exit === undefined || this.#consumed < this.#received || this.#phase.is === 'over') return
    if (this.#phase.is === 'attached') this.#ack()
    this.#end({ is: 'exited', exit: this.#exit })
  }

  #beat(nowMs: number): void {
    const beat = this.#heartbeat.beat(nowMs)
    if (beat === 'dead')
      this.#lost({ code: 'link_lost', message: 'Nothing was heard from the server' }, nowMs)
    else if (beat !== undefined) this.#send({ type: 'ping', id: beat })
  }

  #lost(refusal: { code: ErrorCode; message: string } | undefined, nowMs: number): void {
    const why = refusal ?? { code: 'link_lost', message: 'The connection was lost' }
    if (this.#phase.is === 'over') return
    if (this.#exit !== undefined) {
      // Everything has arrived; the connection is not needed to finish.
      this.#closeAttempt()
      this.#phase = { is: 'finishing' }
      this.#ackDueMs = undefined
      this.#attemptDeadlineMs = undefined
      return
    }
    if (!ERRORS[why.code].retryable) {
      this.#fail(new SandwireError(why.code, why.message))
      return
    }
    if (this.#failures === 0 && this.#session !== undefined)
      this.#giveUpAtMs = nowMs + this.#options.retryForMs
    this.#closeAttempt()
    this.#failures += 1
    this.#ackDueMs = undefined
    this.#attemptDeadlineMs = undefined
    const untilMs =
      nowMs + backOffMs(this.#failures, this.jitter(), this.#options.backOff ?? DEFAULT_BACK_OFF)
    if (untilMs > this.#giveUpAtMs) {
      this.#fail(new SandwireError(why.code, why.message))
      return
    }
    this.#phase = { is: 'waiting', untilMs }
    this.#status({ is: 'reconnecting', attempt: this.#failures, atMs: untilMs, why: why.message })
  }

  #fail(error: SandwireError): void {
    this.#end({ is: 'failed', error })
  }

  #end(status: ClientStatus): void {
    if (this.#phase.is === 'over') return
    this.#closeAttempt()
    this.#phase = { is: 'over' }
    this.#ackDueMs = undefined
    this.#attemptDeadlineMs = undefined
    this.#status(status)
    if (this.#isWriterWaiting) this.#effects.push({ do: 'writable' })
  }

  #closeAttempt(): void {
    const phase = this.#phase
    if (phase.is === 'connecting' || phase.is === 'greeting' || phase.is === 'attached') {
      this.#effects.push({ do: 'close', attempt: phase.attempt })
    }
  }

  /** Sends what waits, as far as role and credit allow. */
  #flush(): void {
    if (this.#phase.is !== 'attached' || this.#role === 'viewer') return
    let next = this.#sendLog.next(this.#inputLimit)
    while (next !== undefined) {
      this.#send(next)
      next = this.#sendLog.next(this.#inputLimit)
    }
  }

  #send(frame: Uint8Array | ClientMessage): void {
    const phase = this.#phase
    if (phase.is !== 'greeting' && phase.is !== 'attached') return
    const data = frame instanceof Uint8Array ? frame : encode(frame)
    this.#effects.push({ do: 'send', attempt: phase.attempt, data })
  }

  #status(status: ClientStatus): void {
    this.#effects.push({ do: 'status', status })
  }

  #take(): readonly ClientEffect[] {
    const effects = this.#effects
    this.#effects = []
    return effects
  }
}
