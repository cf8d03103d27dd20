import { backOffMs, type BackOffBounds, DEFAULT_BACK_OFF } from '../back-off.ts'
import type { AttemptId } from './effects.ts'

/** Time for a connection to open and be welcomed; the first one may wait for a sandbox to start. */
const ATTEMPT_MS = 15_000
/** Minimum time for an attempt, also when the machine was suspended past the deadline. */
const LEAST_ATTEMPT_MS = 2_000

export interface RetryOptions {
  /** How long to try before the first welcome. */
  readonly connectForMs: number
  /** How long to try to reconnect after a connection was lost. */
  readonly retryForMs: number
  readonly backOff?: BackOffBounds
}

/** Numbers connection attempts, sets their deadlines and decides when to give up. */
export class RetrySchedule {
  readonly #options: RetryOptions
  #attempts = 0
  /** Attempts since the last welcome. */
  #failures = 0
  #giveUpAtMs = 0
  /** After the first welcome: no attempt lasts beyond `#giveUpAtMs`. */
  #isReconnecting = false
  #deadlineMs: number | undefined

  constructor(options: RetryOptions) {
    this.#options = options
  }

  get failures(): number {
    return this.#failures
  }

  /** When the attempt in progress has taken too long. */
  get deadlineMs(): number | undefined {
    return this.#deadlineMs
  }

  start(nowMs: number): void {
    this.#giveUpAtMs = nowMs + this.#options.connectForMs
  }

  /** Begins an attempt. */
  begin(nowMs: number): AttemptId {
    this.#attempts += 1
    const leftMs = this.#isReconnecting ? this.#giveUpAtMs - nowMs : ATTEMPT_MS
    this.#deadlineMs = nowMs + Math.max(LEAST_ATTEMPT_MS, Math.min(ATTEMPT_MS, leftMs))
    return this.#attempts
  }

  /** The attempt was welcomed. */
  succeed(): void {
    this.#failures = 0
    this.#deadlineMs = undefined
  }

  /** The attempt has ended. */
  stop(): void {
    this.#deadlineMs = undefined
  }

  /** The connection was lost: returns when to try again, or undefined to give up. `random` is in [0, 1). */
  fail(wasWelcomed: boolean, random: number, nowMs: number): number | undefined {
    if (this.#failures === 0 && wasWelcomed) {
      this.#giveUpAtMs = nowMs + this.#options.retryForMs
      this.#isReconnecting = true
    }
    this.#failures += 1
    const untilMs = nowMs + backOffMs(this.#failures, random, this.#options.backOff ?? DEFAULT_BACK_OFF)
    return untilMs > this.#giveUpAtMs ? undefined : untilMs
  }
}
