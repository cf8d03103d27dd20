import type { ClientMessage } from '../client-frames.ts'
import { encode } from '../codec.ts'
import { ERRORS, type ErrorCode, SandwireError } from '../errors.ts'
import type { EffectBuffer } from './effect-buffer.ts'
import type { AttemptId, ClientStatus } from './effects.ts'
import { Heartbeat } from './heartbeat.ts'
import { type RetryOptions, RetrySchedule } from './retry-schedule.ts'

type Phase =
  | { readonly kind: 'idle' }
  /** The connection is being opened. */
  | { readonly kind: 'connecting'; readonly attempt: AttemptId }
  /** Open, hello sent, welcome awaited. */
  | { readonly kind: 'handshaking'; readonly attempt: AttemptId }
  | { readonly kind: 'attached'; readonly attempt: AttemptId }
  | { readonly kind: 'backingOff'; readonly untilMs: number }
  /** Everything was received but not consumed; no connection is needed any more. */
  | { readonly kind: 'finishing' }
  | { readonly kind: 'ended' }

/** After this time a connection counts as established; its loss is not caused by a permanent condition. */
const SETTLED_MS = 1_000

/** Why a connection ended. */
export interface ConnectionLoss {
  readonly code: ErrorCode
  readonly message: string
}

/** Opens the client's connection, and reopens it after a loss until an error is final or the retry time is over. */
export class ConnectionLifecycle {
  readonly #effects: EffectBuffer
  readonly #reconnection: RetrySchedule
  readonly #heartbeat: Heartbeat
  #phase: Phase = { kind: 'idle' }
  /** When the newest connection was welcomed. */
  #welcomedMs = 0
  /** Silence of the server was reported. */
  #isSilent = false
  /** Known from the first welcome on. */
  #session: string | undefined

  constructor(effects: EffectBuffer, options: RetryOptions & { heartbeatMs: number }) {
    this.#effects = effects
    this.#reconnection = new RetrySchedule(options)
    this.#heartbeat = new Heartbeat(options.heartbeatMs)
  }

  get kind(): Phase['kind'] {
    return this.#phase.kind
  }

  get session(): string | undefined {
    return this.#session
  }

  /** True for the attempt whose events count. */
  isCurrent(attempt: AttemptId): boolean {
    return 'attempt' in this.#phase && this.#phase.attempt === attempt
  }

  start(nowMs: number): void {
    this.#reconnection.start(nowMs)
    this.#connect(nowMs)
  }

  /** The connection is open; false when it is not the one awaited. */
  open(attempt: AttemptId, nowMs: number): boolean {
    if (this.#phase.kind !== 'connecting' || this.#phase.attempt !== attempt) return false
    this.#phase = { kind: 'handshaking', attempt }
    this.#heartbeat.opened(nowMs)
    return true
  }

  /** The server accepted the hello. */
  welcome(session: string, nowMs: number): void {
    if (this.#phase.kind !== 'handshaking') return
    this.#phase = { kind: 'attached', attempt: this.#phase.attempt }
    this.#session = session
    this.#welcomedMs = nowMs
    this.#reconnection.succeed()
    this.#heartbeat.welcomed(nowMs)
  }

  received(nowMs: number): void {
    this.#heartbeat.received(nowMs)
    this.#reportSilence(false)
  }

  /** Pings the server at once; without any frame within the time, the connection counts as lost. While backing off, reconnects at once. */
  probe(withinMs: number, nowMs: number): void {
    if (this.#phase.kind === 'backingOff') this.#connect(nowMs)
    else if (this.#phase.kind === 'attached')
      this.send({ type: 'ping', id: this.#heartbeat.probe(withinMs, nowMs) })
  }

  pong(id: number, nowMs: number): void {
    const ms = this.#heartbeat.pong(id, nowMs)
    if (ms !== undefined) this.#effects.push({ do: 'roundTrip', ms })
  }

  send(frame: Uint8Array | ClientMessage): void {
    const phase = this.#phase
    if (phase.kind !== 'handshaking' && phase.kind !== 'attached') return
    const data = frame instanceof Uint8Array ? frame : encode(frame)
    this.#effects.push({ do: 'send', attempt: phase.attempt, data })
  }

  /** Handles expired timeouts; returns why the connection counts as lost, if it does. */
  tick(nowMs: number): ConnectionLoss | undefined {
    if (this.#phase.kind === 'backingOff' && nowMs >= this.#phase.untilMs) this.#connect(nowMs)
    const { deadlineMs } = this.#reconnection
    if (deadlineMs !== undefined && nowMs >= deadlineMs) {
      return { code: 'link_lost', message: 'The connection did not open in time' }
    }
    if (this.#phase.kind !== 'attached') return undefined
    const due = this.#heartbeat.poll(nowMs)
    if (due === 'dead') return { code: 'link_lost', message: 'The server did not answer' }
    if (due !== undefined) this.send({ type: 'ping', id: due })
    const { silenceNoticeAtMs } = this.#heartbeat
    if (silenceNoticeAtMs !== undefined && nowMs >= silenceNoticeAtMs) this.#reportSilence(true)
    return undefined
  }

  /** When `tick` is next needed. */
  nextTickMs(): number | undefined {
    switch (this.#phase.kind) {
      case 'backingOff':
        return this.#phase.untilMs
      case 'attached': {
        const { nextMs, silenceNoticeAtMs } = this.#heartbeat
        return silenceNoticeAtMs === undefined || this.#isSilent
          ? nextMs
          : Math.min(nextMs, silenceNoticeAtMs)
      }
      case 'connecting':
      case 'handshaking':
        return this.#reconnection.deadlineMs
      case 'idle':
      case 'finishing':
      case 'ended':
        return undefined
    }
  }

  /** The connection was lost: schedules the next attempt, or ends with the reason and returns false. `random` is in [0, 1). */
  lose(why: ConnectionLoss, random: number, nowMs: number): boolean {
    if (this.#reconnectsImmediately(why, nowMs)) {
      this.#close({ kind: 'backingOff', untilMs: nowMs })
      this.#connect(nowMs)
      return true
    }
    const untilMs = ERRORS[why.code].retryable
      ? this.#reconnection.fail(this.#session !== undefined, random, nowMs)
      : undefined
    if (untilMs === undefined) {
      this.end({ kind: 'failed', error: new SandwireError(why.code, why.message) })
      return false
    }
    this.#close({ kind: 'backingOff', untilMs })
    const attempt = this.#reconnection.failures
    this.status({ kind: 'reconnecting', attempt, atMs: untilMs, why: why.message })
    return true
  }

  /** True when the server asked an established connection for a new credential. */
  #reconnectsImmediately({ code }: ConnectionLoss, nowMs: number): boolean {
    const isSettled = this.#phase.kind === 'attached' && nowMs >= this.#welcomedMs + SETTLED_MS
    return code === 'reauthorise' && isSettled
  }

  /** Continues without a connection. */
  finish(): void {
    this.#close({ kind: 'finishing' })
  }

  end(status: ClientStatus): void {
    this.#close({ kind: 'ended' })
    this.status(status)
  }

  status(status: ClientStatus): void {
    this.#effects.push({ do: 'status', status })
  }

  #connect(nowMs: number): void {
    const attempt = this.#reconnection.begin(nowMs)
    this.#phase = { kind: 'connecting', attempt }
    const isNew = this.#session === undefined
    if (isNew) this.status({ kind: 'connecting', attempt: this.#reconnection.failures + 1 })
    this.#effects.push({ do: 'connect', attempt, session: this.#session })
  }

  #reportSilence(isSilent: boolean): void {
    if (isSilent === this.#isSilent) return
    this.#isSilent = isSilent
    this.#effects.push({ do: 'silence', isSilent })
  }

  #close(next: Phase): void {
    if ('attempt' in this.#phase) this.#effects.push({ do: 'close', attempt: this.#phase.attempt })
    this.#reconnection.stop()
    this.#reportSilence(false)
    this.#phase = next
  }
}
