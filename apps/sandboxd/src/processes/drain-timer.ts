/** How long output of descendants is read after the leader has exited. */
export interface DrainLimits {
  /** Longest pause in the output. */
  readonly drainMs: number
  /** Most output. */
  readonly drainBytes: number
}

/**
 * Decides when reading ends after the leader's exit although a descendant still holds the stream open.
 *
 * Time counts only while reading is not paused; each chunk and each resume restarts it.
 */
export class DrainClock {
  readonly #limits: DrainLimits
  /** Start of the current idle stretch; undefined while stopped. */
  #idleSinceMs: number | undefined
  /** Output since exit. */
  #bytes = 0

  constructor(limits: DrainLimits) {
    this.#limits = limits
  }

  /** Begins an idle stretch: at exit, after a chunk, at resume. */
  restart(nowMs: number): void {
    this.#idleSinceMs = nowMs
  }

  /** Stops counting: at pause. */
  stop(): void {
    this.#idleSinceMs = undefined
  }

  /** Counts output after exit; begins a new idle stretch if the clock runs. */
  chunk(bytes: number, nowMs: number): void {
    this.#bytes += bytes
    if (this.#idleSinceMs !== undefined) this.#idleSinceMs = nowMs
  }

  /** True when descendants have written as much as they may. */
  get isOverBytes(): boolean {
    return this.#bytes >= this.#limits.drainBytes
  }

  /** Milliseconds until the time is over, 0 when it is, undefined while stopped. */
  remainingMs(nowMs: number): number | undefined {
    if (this.#idleSinceMs === undefined) return undefined
    return Math.max(0, this.#idleSinceMs + this.#limits.drainMs - nowMs)
  }
}

export interface DrainTimerEvents {
  /** Reads the streams; true when nothing is readable now. May end the process, which calls `stop`. */
  isQuiet(): boolean
  /** A descendant holds the streams and does not write, or writes without end. */
  expired(): void
}

/** Runs a drain clock from the leader's exit on; checks `isQuiet` before it expires. */
export class DrainTimer {
  readonly #clock: DrainClock
  readonly #now: () => number
  readonly #events: DrainTimerEvents
  #isStarted = false
  #isPaused = false
  #timer: Timer | undefined

  constructor(options: DrainLimits & { now: () => number }, events: DrainTimerEvents) {
    this.#clock = new DrainClock(options)
    this.#now = options.now
    this.#events = events
  }

  /** The leader has exited. */
  start(): void {
    this.#isStarted = true
    this.#arm()
  }

  pause(): void {
    this.#isPaused = true
    this.#clock.stop()
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  resume(): void {
    this.#isPaused = false
    this.#arm()
  }

  /** Output arrived; false when no more may follow. */
  chunk(bytes: number): boolean {
    if (!this.#isStarted) return true
    this.#clock.chunk(bytes, this.#now())
    return !this.#clock.isOverBytes
  }

  stop(): void {
    this.#isStarted = false
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #arm(): void {
    if (!this.#isStarted || this.#isPaused || this.#timer !== undefined) return
    const now = this.#now()
    if (this.#clock.remainingMs(now) === undefined) this.#clock.restart(now)
    this.#timer = setTimeout(() => this.#check(), this.#clock.remainingMs(now) ?? 0)
  }

  /** A late timer must not discard bytes that are waiting, so the streams are read before the clock. */
  #check(): void {
    this.#timer = undefined
    const isQuiet = this.#events.isQuiet()
    if (!this.#isStarted || this.#isPaused) return
    const now = this.#now()
    if (!isQuiet) this.#clock.restart(now)
    else if (this.#clock.remainingMs(now) === 0) {
      this.#events.expired()
      return
    }
    this.#arm()
  }
}
