/** Silence after a ping that any connection is forgiven. */
const MIN_DEADLINE_MS = 10_000
/** Silence forgiven before anything is known of the path: one frame of a fresh window at 1 KB/s takes 16 s. */
const UNKNOWN_DEADLINE_MS = 30_000
/** Longest silence that any slowness can excuse. */
const MAX_DEADLINE_MS = 120_000
/** Silence after a ping that is worth a word to who looks, long before it is a verdict. */
const SILENCE_NOTICE_MS = 5_000
/** How many times the longest silence seen before is forgiven. */
const SILENCE_FACTOR = 4

/**
 * Tells a slow connection from a dead one. Any frame is a sign of life, so only silence counts, and only while a ping
 * is unanswered. On a slow path the pong queues behind a window of output, whose frames arrive in proportion to the
 * rate; the silences between them are what the path is measured by.
 */
export class Heartbeat {
  readonly #intervalMs: number
  #lastReceivedMs = 0
  #lastPingMs = 0
  #pingId = 0
  /** When the unanswered ping was sent. */
  #unansweredMs: number | undefined
  /** When something has to be heard, after a question that cannot wait. */
  #urgentMs: number | undefined
  /** Longest silence while this ping waits for its answer. */
  #silenceMs = 0
  /** The same of earlier pings, halved with each answer, so that a path that recovers is believed; undefined at first. */
  #pastSilenceMs: number | undefined

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs
  }

  /** A connection is open; nothing is known of its path. */
  opened(nowMs: number): void {
    this.#lastReceivedMs = nowMs
    this.#lastPingMs = nowMs
    this.#unansweredMs = undefined
    this.#urgentMs = undefined
    this.#silenceMs = 0
    this.#pastSilenceMs = undefined
  }

  /** The first ping goes out soon, so that a round-trip time is known early. */
  welcomed(nowMs: number): void {
    this.#lastPingMs = nowMs - this.#intervalMs
  }

  /** A frame came in. */
  received(nowMs: number): void {
    if (this.#unansweredMs !== undefined) {
      const sinceMs = Math.max(this.#lastReceivedMs, this.#unansweredMs)
      this.#silenceMs = Math.max(this.#silenceMs, nowMs - sinceMs)
    }
    this.#lastReceivedMs = nowMs
    this.#urgentMs = undefined
  }

  /** Asks at once whether the server is there: returns a ping's id. Nothing heard within the time given is death. */
  probe(withinMs: number, nowMs: number): number {
    this.#urgentMs = nowMs + withinMs
    return this.#ping(nowMs)
  }

  /** Takes a pong, after `heard`; returns the round-trip time when it answers the last ping. */
  pong(id: number, nowMs: number): number | undefined {
    if (id !== this.#pingId || this.#unansweredMs === undefined) return undefined
    const ms = nowMs - this.#unansweredMs
    this.#unansweredMs = undefined
    this.#pastSilenceMs = Math.max(this.#silenceMs, (this.#pastSilenceMs ?? 0) / 2)
    this.#silenceMs = 0
    return ms
  }

  /** What is due: a ping with this id, the verdict that the connection is dead, or nothing. */
  beat(nowMs: number): number | 'dead' | undefined {
    if (nowMs < this.nextMs) return undefined
    if (this.#unansweredMs !== undefined) return 'dead'
    return this.#ping(nowMs)
  }

  /** When `beat` next has something to say. */
  get nextMs(): number {
    if (this.#unansweredMs === undefined) return this.#lastPingMs + this.#intervalMs
    const deadlineMs = this.#silentFromMs(this.#unansweredMs) + this.#deadlineMs()
    return this.#urgentMs === undefined ? deadlineMs : Math.min(deadlineMs, this.#urgentMs)
  }

  /** From when on the silence is worth a word; undefined while nothing is awaited. */
  get silenceNoticeMs(): number | undefined {
    return this.#unansweredMs === undefined
      ? undefined
      : this.#silentFromMs(this.#unansweredMs) + SILENCE_NOTICE_MS
  }

  #silentFromMs(unansweredMs: number): number {
    return Math.max(this.#lastReceivedMs, unansweredMs)
  }

  #ping(nowMs: number): number {
    this.#pingId += 1
    this.#lastPingMs = nowMs
    this.#unansweredMs = nowMs
    return this.#pingId
  }

  #deadlineMs(): number {
    const known = Math.max(this.#silenceMs, this.#pastSilenceMs ?? 0)
    const leastMs = this.#pastSilenceMs === undefined ? UNKNOWN_DEADLINE_MS : MIN_DEADLINE_MS
    return Math.min(MAX_DEADLINE_MS, Math.max(leastMs, SILENCE_FACTOR * known))
  }
}
