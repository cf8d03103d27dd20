import { SandwireError } from '@sandwire/protocol'
import { Buckets } from '../http/buckets.ts'

/** What may come at once, where a second of it is less: an answer is worth its request. */
const MIN_BURST_BYTES = 16 * 1024
/** Less is not worth a request, so it is waited for. */
const MIN_ANSWER_BYTES = 1024
/** People remembered; the one unheard of for longest is forgotten first. */
const MAX_PEOPLE = 256

/** How much output of one sandbox each person may have in answers to requests; streams are slowed where they are made. */
export class OutputBudget {
  readonly #buckets: Buckets | undefined
  readonly #leastBytes: number

  /** 0: no limit. */
  constructor(bytesPerSecond: number) {
    this.#leastBytes = Math.min(Math.max(bytesPerSecond, MIN_ANSWER_BYTES), MIN_BURST_BYTES)
    const burst = Math.max(bytesPerSecond, MIN_BURST_BYTES)
    this.#buckets =
      bytesPerSecond === 0 ? undefined : new Buckets({ perSecond: bytesPerSecond, burst, max: MAX_PEOPLE })
  }

  /** Throws `rate_limited` when there is too little left to answer with. */
  check(person: string, nowMs: number): void {
    const retryAfterMs = this.#buckets?.waitMs(person, nowMs, this.#leastBytes) ?? 0
    if (retryAfterMs > 0)
      throw new SandwireError('rate_limited', 'Cannot send more output now', { retryAfterMs })
  }

  /** Takes up to `wantedBytes`; returns how many may be sent. */
  take(person: string, wantedBytes: number, nowMs: number): number {
    return this.#buckets?.takeUpTo(person, wantedBytes, nowMs) ?? wantedBytes
  }
}
