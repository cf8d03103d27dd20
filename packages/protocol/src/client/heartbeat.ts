/** Least time a ping may go unanswered in silence before the connection counts as dead. */
const MIN_DEADLINE_MS = 10_000
/** Longest silence that any rate can excuse. */
const MAX_DEADLINE_MS = 120_000
/** A pong may wait behind one window; this many times the time that takes is allowed. */
const PATIENCE = 4
/** Rate is measured over spans of at least this. */
const RATE_SPAN_MS = 1_000

/**
 * Tells a slow connection from a dead one. Any byte is a sign of life, so only silence counts; and because a pong
 * queues behind at most one window of output, the silence allowed follows from the rate that was measured.
 */
export class Heartbeat {
  readonly #intervalMs: number
  readonly #windowBytes: number
  #lastHeardMs = 0
  #lastPingMs = 0
  #pingId = 0
  /** When the unanswered ping was sent. */
  #unansweredMs: number | undefined
  /** Bytes heard since `#spanMs`, and the slowest recent rate. */
  #spanBytes = 0
  #spanMs = 0
  #bytesPerMs: number | undefined

  constructor(intervalMs: number, windowBytes: number) {
    this.#intervalMs = intervalMs
    this.#windowBytes = windowBytes
  }

  opened(nowMs: number): void {
    this.#lastHeardMs = nowMs
    this.#lastPingMs = nowMs
    this.#unansweredMs = undefined
    this.#spanBytes = 0
    this.#spanMs = nowMs
  }

  /** The first ping goes out soon, so that a round-trip time is known early. */
  welcomed(nowMs: number): void {
    this.#lastPingMs = nowMs - this.#intervalMs
  }

  heard(bytes: number, nowMs: number): void {
    this.#lastHeardMs = nowMs
    this.#spanBytes += bytes
    const spanMs = nowMs - this.#spanMs
    if (spanMs < RATE_SPAN_MS) return
    this.#bytesPerMs = this.#spanBytes / spanMs
    this.#spanBytes = 0
    this.#spanMs = nowMs
  }

  /** Takes a pong; returns the round-trip time when it answers the last ping. */
  pong(id: number, nowMs: number): number | undefined {
    if (id !== this.#pingId || this.#unansweredMs === undefined) return undefined
    const ms = nowMs - this.#unansweredMs
    this.#unansweredMs = undefined
    return ms
  }

  /** What is due: a ping with this id, the verdict that the connection is dead, or nothing. */
  beat(nowMs: number): number | 'dead' | undefined {
    if (nowMs < this.nextMs) return undefined
    if (this.#unansweredMs !== undefined) return 'dead'
    this.#pingId += 1
    this.#lastPingMs = nowMs
    this.#unansweredMs = nowMs
    return this.#pingId
  }

  /** When `beat` next has something to say. */
  get nextMs(): number {
    if (this.#unansweredMs !== undefined)
      return Math.max(this.#lastHeardMs, this.#unansweredMs) + this.#deadlineMs()
    return this.#lastPingMs + this.#intervalMs
  }

  #deadlineMs(): number {
    const rate = this.#bytesPerMs ?? Number.POSITIVE_INFINITY
    const windowMs = rate > 0 ? this.#windowBytes / rate : MAX_DEADLINE_MS
    return Math.min(MAX_DEADLINE_MS, Math.max(MIN_DEADLINE_MS, PATIENCE * windowMs))
  }
}
