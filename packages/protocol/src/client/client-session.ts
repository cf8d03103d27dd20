import type { ClientMessage, Role } from '../client-frames.ts'
import { decodeServer, type WireMessage } from '../codec.ts'
import type { StreamName } from '../data-frame.ts'
import { isErrorCode, SandwireError } from '../errors.ts'
import { CLIENT_INPUT_BYTES, HEARTBEAT_MS } from '../limits.ts'
import type { Exit, ServerMessage, Welcome } from '../server-frames.ts'
import { parseStopReason } from '../stop-reason.ts'
import { PROTOCOL_VERSION } from '../version.ts'
import { ConnectionLifecycle, type ConnectionLoss } from './connection-lifecycle.ts'
import { EffectBuffer } from './effect-buffer.ts'
import type { AttemptId, ClientEffect, ClientStatus } from './effects.ts'
import { InputSender } from './input-sender.ts'
import { OutputReceiver } from './output-receiver.ts'
import type { RetryOptions } from './retry-schedule.ts'
import type { UnsequencedControl } from './send-log.ts'

export interface ClientOptions extends RetryOptions {
  /** Secret of this attachment: 32 lower-case hex digits. */
  readonly identity: string
  /** Most output bytes in flight. */
  readonly windowBytes: number
  readonly cols: number
  readonly rows: number
  readonly role?: Role
  readonly name?: string
  readonly env?: Readonly<Record<string, string>>
  readonly maxInputBytes?: number
  readonly heartbeatMs?: number
}

/**
 * The client's side of one attachment, without any I/O: every method takes the time and returns the effects to perform. It
 * reconnects until an error is final or its deadline has passed, and resumes both streams exactly.
 */
export class ClientSession {
  readonly #options: ClientOptions
  readonly #effects = new EffectBuffer()
  readonly #output = new OutputReceiver(this.#effects)
  readonly #input: InputSender
  readonly #connection: ConnectionLifecycle
  /** Set when the process has exited and all its output was received. */
  #exit: Exit | undefined

  constructor(options: ClientOptions) {
    const { cols, rows, maxInputBytes = CLIENT_INPUT_BYTES, heartbeatMs = HEARTBEAT_MS } = options
    this.#options = options
    this.#input = new InputSender(this.#effects, maxInputBytes, { cols, rows })
    this.#connection = new ConnectionLifecycle(this.#effects, { ...options, heartbeatMs })
  }

  get received(): number {
    return this.#output.received
  }

  get consumedOffset(): number {
    return this.#output.consumed
  }

  get role(): Role {
    return this.#input.role
  }

  get session(): string | undefined {
    return this.#connection.session
  }

  get heldInputBytes(): number {
    return this.#input.heldBytes
  }

  get isInputEmpty(): boolean {
    return this.#input.isEmpty
  }

  start(nowMs: number): readonly ClientEffect[] {
    if (this.#connection.kind === 'idle') this.#connection.start(nowMs)
    return this.#effects.take()
  }

  /** The connection is open. */
  opened(attempt: AttemptId, nowMs: number): readonly ClientEffect[] {
    if (this.#connection.open(attempt, nowMs)) this.#hello(attempt)
    return this.#effects.take()
  }

  /** A message was received. */
  receive(attempt: AttemptId, wire: WireMessage, nowMs: number): readonly ClientEffect[] {
    if (!this.#connection.isCurrent(attempt)) return []
    this.#connection.received(nowMs)
    const frame = decodeServer(wire)
    if (frame === undefined) this.#fail(new SandwireError('bad_frame', 'Cannot decode what the server sent'))
    else if (frame.kind === 'data') this.#data(frame.stream, frame.payload, nowMs)
    else this.#message(frame.message, nowMs)
    this.#flush()
    return this.#effects.take()
  }

  /** The connection was closed or could not be opened; `refusal` is the server's reason, if known. */
  closed(attempt: AttemptId, refusal: ConnectionLoss | undefined, nowMs: number): readonly ClientEffect[] {
    const why = refusal ?? { code: 'link_lost', message: 'The connection was lost' }
    if (this.#connection.isCurrent(attempt)) this.#lost(why, nowMs)
    return this.#effects.take()
  }

  /** The consumer has consumed all output up to `end`. */
  consumed(end: number, nowMs: number): readonly ClientEffect[] {
    this.#output.consume(end)
    this.#ackIfWorthwhile(nowMs)
    this.#finishWhenDone()
    return this.#effects.take()
  }

  /** True when `write` accepts more. */
  get canWrite(): boolean {
    return this.#input.canWrite
  }

  /** Queues input. The caller waits for `writable` while `canWrite` is false. */
  write(bytes: Uint8Array): readonly ClientEffect[] {
    if (this.#connection.kind === 'ended') return []
    this.#input.write(bytes, this.#connection.kind === 'attached')
    this.#flush()
    return this.#effects.take()
  }

  /** Queues end of input, a signal or a resize. */
  control(message: UnsequencedControl): readonly ClientEffect[] {
    if (this.#connection.kind === 'ended') return []
    this.#input.control(message, this.#connection.kind === 'attached')
    this.#flush()
    return this.#effects.take()
  }

  /** Asks for, takes or gives the lease, or begins or ends private input. Ignored while there is no connection. */
  lease(
    message: Extract<ClientMessage, { type: 'take' | 'ask' | 'give' | 'private' }>,
  ): readonly ClientEffect[] {
    if (this.#connection.kind === 'attached') this.#connection.send(message)
    return this.#effects.take()
  }

  /** Detaches. The session continues for its keep time. */
  detach(): readonly ClientEffect[] {
    if (this.#connection.kind === 'attached') this.#connection.send({ type: 'detach' })
    this.#end({ kind: 'detached' })
    return this.#effects.take()
  }

  /** The network may have changed: pings the server at once, or reconnects at once. */
  probe(withinMs: number, nowMs: number): readonly ClientEffect[] {
    this.#connection.probe(withinMs, nowMs)
    return this.#effects.take()
  }

  tick(nowMs: number): readonly ClientEffect[] {
    const { ackDueMs } = this.#output
    if (ackDueMs !== undefined && nowMs >= ackDueMs) this.#ack(this.#output.takeAck())
    const loss = this.#connection.tick(nowMs)
    if (loss !== undefined) this.#lost(loss, nowMs)
    return this.#effects.take()
  }

  /** When `tick` is next needed. */
  nextTickMs(): number | undefined {
    const { ackDueMs } = this.#output
    const otherMs = this.#connection.nextTickMs()
    return ackDueMs === undefined || otherMs === undefined
      ? (ackDueMs ?? otherMs)
      : Math.min(ackDueMs, otherMs)
  }

  /** Random number in [0, 1) for the next delay; set by the driver, because the core has no randomness. */
  jitter: () => number = () => 0.5

  #hello(attempt: AttemptId): void {
    const { identity, windowBytes, role, name, env } = this.#options
    const isNew = this.session === undefined
    this.#connection.send({
      type: 'hello',
      version: PROTOCOL_VERSION,
      identity,
      attempt,
      resuming: !isNew,
      received: this.#output.received,
      window: windowBytes,
      ...this.#input.size,
      ...(role === undefined ? {} : { role }),
      ...(name === undefined ? {} : { name }),
      ...(env === undefined || !isNew ? {} : { env }),
    })
  }

  #message(message: ServerMessage, nowMs: number): void {
    if (this.#connection.kind === 'handshaking' && message.type !== 'welcome' && message.type !== 'error') {
      this.#fail(new SandwireError('bad_frame', `Cannot accept ${message.type} before welcome`))
      return
    }
    switch (message.type) {
      case 'welcome':
        this.#welcome(message, nowMs)
        return
      case 'ack':
        this.#failIf(this.#input.acked(message.input, message.seq))
        return
      case 'gap':
        this.#failIf(this.#output.gap(message.from, message.to))
        this.#ackIfWorthwhile(nowMs)
        return
      case 'snapshot':
        this.#failIf(this.#output.snapshotHead(message))
        return
      case 'resized':
        this.#effects.push({ do: 'resized', cols: message.cols, rows: message.rows })
        return
      case 'stdinClosed':
        this.#input.close(message.at)
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
      case 'pong':
        this.#connection.pong(message.id, nowMs)
        return
    }
  }

  #welcome(welcome: Welcome, nowMs: number): void {
    if (this.#connection.kind !== 'handshaking') return
    const { received } = this.#output
    const isResume = this.session !== undefined
    if (isResume && (welcome.session !== this.session || welcome.output !== received)) {
      const message = `Cannot resume at ${received}: the server continues at ${welcome.output}`
      this.#fail(new SandwireError('desync', message))
      return
    }
    this.#connection.welcome(welcome.session, nowMs)
    if (isResume) this.#output.continue()
    else this.#output.beginAt(welcome.output)
    const { role, input, inputWindow } = welcome
    if (this.#failIf(this.#input.welcome({ role, input, inputWindow, isResume }))) return
    this.#connection.status({ kind: 'attached', session: welcome.session, role })
    this.#ackIfWorthwhile(nowMs)
  }

  #data(stream: StreamName, payload: Uint8Array, nowMs: number): void {
    if (this.#connection.kind !== 'attached') {
      this.#fail(new SandwireError('bad_frame', 'Cannot accept output before welcome'))
    } else if (stream === 'snapshot') this.#failIf(this.#output.snapshotData(payload))
    else this.#failIf(this.#output.data(stream, payload, nowMs))
  }

  #ackIfWorthwhile(nowMs: number): void {
    if (this.#connection.kind === 'attached') this.#ack(this.#output.considerAck(nowMs))
  }

  #ack(output: number | undefined): void {
    if (output !== undefined) this.#connection.send({ type: 'ack', output })
  }

  #roleChanged(message: Extract<ServerMessage, { type: 'role' }>): void {
    this.#input.setRole(message.role, message.input)
    this.#connection.send({ type: 'roleSeen', epoch: message.epoch })
    if (this.session !== undefined) {
      this.#connection.status({ kind: 'attached', session: this.session, role: message.role })
    }
  }

  #error(message: Extract<ServerMessage, { type: 'error' }>, nowMs: number): void {
    if (!message.fatal) {
      const stopReason = parseStopReason(message.reason)
      this.#effects.push({ do: 'warning', code: message.code, message: message.message, stopReason })
      return
    }
    const code = isErrorCode(message.code) ? message.code : 'internal'
    this.#lost({ code, message: message.message }, nowMs)
  }

  #exited(exit: Exit): void {
    const { received } = this.#output
    if (exit.outputEnd !== received) {
      const message = `The process ended at ${exit.outputEnd}, but ${received} was received`
      this.#fail(new SandwireError('desync', message))
      return
    }
    this.#exit = exit
    this.#finishWhenDone()
  }

  /** The exit is reported once every byte before it has been consumed. */
  #finishWhenDone(): void {
    if (this.#exit === undefined || !this.#output.isConsumed) return
    if (this.#connection.kind === 'attached') this.#ack(this.#output.takeAck())
    this.#end({ kind: 'exited', exit: this.#exit })
  }

  #lost(why: ConnectionLoss, nowMs: number): void {
    if (this.#connection.kind === 'ended') return
    this.#output.stop()
    // Once everything was received, no connection is needed to finish.
    if (this.#exit !== undefined) this.#connection.finish()
    else if (!this.#connection.lose(why, this.jitter(), nowMs)) this.#input.releaseWriter()
  }

  #failIf(error: SandwireError | undefined): boolean {
    if (error !== undefined) this.#fail(error)
    return error !== undefined
  }

  #fail(error: SandwireError): void {
    this.#end({ kind: 'failed', error })
  }

  #end(status: ClientStatus): void {
    if (this.#connection.kind === 'ended') return
    this.#output.stop()
    this.#connection.end(status)
    this.#input.releaseWriter()
  }

  /** Sends queued input as far as role and credit allow. */
  #flush(): void {
    if (this.#connection.kind !== 'attached') return
    for (let next = this.#input.next(); next !== undefined; next = this.#input.next()) {
      this.#connection.send(next)
    }
  }
}
