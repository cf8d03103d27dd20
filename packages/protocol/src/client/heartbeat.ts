/** Minimum timeout of a ping. */
const MIN_TIMEOUT_MS = 10_000
/** Minimum timeout before the first pong: a frame of 16 KiB, a quarter of the initial window, takes 16 s at 1 KB/s. */
const INITIAL_MIN_TIMEOUT_MS = 30_000
/** Maximum timeout of a ping, on any path. */
const MAX_TIMEOUT_MS = 120_000
/** Silence after a ping that is reported to the user. */
const SILENCE_NOTICE_MS = 5_000
/** The timeout is this many times the longest silence observed. */
const SILENCE_FACTOR = 4

/**
 * Tells a slow connection from a dead one. Any frame proves that the connection is alive, so only silence counts, and only
 * while a ping is unanswered. On a slow path the pong is queued after a window of output; the silences between its frames
 * measure the path.
 */
export class Heartbeat {
  readonly #intervalMs: number
  #lastReceivedMs = 0
  #lastPingMs = 0
  #pingId = 0
  /** When the unanswered ping was sent. */
  #pingSentMs: number | undefined
  /** When a frame must have been received after a probe. */
  #probeDeadlineMs: number | undefined
  /** Longest silence since the unanswered ping was sent. */
  #silenceMs = 0
  /** The same for earlier pings, halved with each pong so that it follows a path that recovers; undefined at first. */
  #pastSilenceMs: number | undefined

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs
  }

  /** A connection was opened; nothing is known about its path. */
  opened(nowMs: number): void {
    this.#lastReceivedMs = nowMs
    this.#lastPingMs = nowMs
    this.#pingSentMs = undefined
    this.#probeDeadlineMs = undefined
    this.#silenceMs = 0
    this.#pastSilenceMs = undefined
  }

  /** The first ping is sent soon, so that the round-trip time is known early. */
  welcomed(nowMs: number): void {
    this.#lastPingMs = nowMs - this.#intervalMs
  }

  /** A frame was received. */
  received(nowMs: number): void {
    if (this.#pingSentMs !== undefined) {
      const sinceMs = Math.max(this.#lastReceivedMs, this.#pingSentMs)
      this.#silenceMs = Math.max(this.#silenceMs, nowMs - sinceMs)
    }
    this.#lastReceivedMs = nowMs
    this.#probeDeadlineMs = undefined
  }

  /** Returns the id of a ping to send at once. Without any frame within `withinMs` the connection is dead. */
  probe(withinMs: number, nowMs: number): number {
    this.#probeDeadlineMs = nowMs + withinMs
    return this.#ping(nowMs)
  }

  /** Handles a pong, after `received`; returns the round-trip time when it answers the last ping. */
  pong(id: number, nowMs: number): number | undefined {
    if (id !== this.#pingId || this.#pingSentMs === undefined) return undefined
    const ms = nowMs - this.#pingSentMs
    this.#pingSentMs = undefined
    this.#pastSilenceMs = Math.max(this.#silenceMs, (this.#pastSilenceMs ?? 0) / 2)
    this.#silenceMs = 0
    return ms
  }

  /** What is due: a ping with this id, `dead`, or nothing. */
  poll(nowMs: number): number | 'dead' | undefined {
    if (nowMs < this.nextMs) return undefined
    if (this.#pingSentMs !== undefined) return 'dead'
    return this.#ping(nowMs)
  }

  /** When `poll` next returns something. */
  get nextMs(): number {
    if (this.#pingSentMs === undefined) return this.#lastPingMs + this.#intervalMs
    const deadlineMs = this.#silentFromMs(this.#pingSentMs) + this.#timeoutMs()
    return this.#probeDeadlineMs === undefined ? deadlineMs : Math.min(deadlineMs, this.#probeDeadlineMs)
  }

  /** When the silence is to be reported; undefined while no ping is unanswered. */
  get silenceNoticeAtMs(): number | undefined {
    return this.#pingSentMs === undefined
      ? undefined
      : this.#silentFromMs(this.#pingSentMs) + SILENCE_NOTICE_MS
  }

  #silentFromMs(pingSentMs: number): number {
    return Math.max(this.#lastReceivedMs, pingSentMs)
  }

  #ping(nowMs: number): number {
    this.#pingId += 1
    this.#lastPingMs = nowMs
    this.#pingSentMs = nowMs
    return this.#pingId
  }

  #timeoutMs(): number {
    const known = Math.max(this.#silenceMs, this.#pastSilenceMs ?? 0)
    const minTimeoutMs = this.#pastSilenceMs === undefined ? INITIAL_MIN_TIMEOUT_MS : MIN_TIMEOUT_MS
    return Math.min(MAX_TIMEOUT_MS, Math.max(minTimeoutMs, SILENCE_FACTOR * known))
  }
}
