import { DrainClock, type DrainLimits } from './drain-clock.ts'

export interface DrainTimerEvents {
  /** Looks at the streams; true when nothing is readable now. May end the process, and then `stop` is called. */
  isQuiet(): boolean
  /** Somebody holds the streams and does not write, or writes without end. */
  expired(): void
}

/** Runs a drain clock from the leader's exit on, asking `isQuiet` before it fires. */
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

  /** Output arrived; false when it was the last that is allowed. */
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
    this.#timer = setTimeout(() => this.#look(), this.#clock.remainingMs(now) ?? 0)
  }

  /** A late timer must not cut bytes that are waiting, so the streams are asked before the clock. */
  #look(): void {
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
