import { SandwireError } from '@sandwire/protocol'
import { Buckets } from '../http/buckets.ts'

/** Smallest burst, so that a response is worth its request. */
const MIN_BURST_BYTES = 16 * 1024
/** With less left in the budget, the caller must wait. */
const MIN_RESPONSE_BYTES = 1024
/** Accounts with a budget of their own; the least recently used is dropped first. */
const MAX_ACCOUNTS = 256

/** Limits the output of one sandbox that each account gets in HTTP responses; sandboxd limits streams. */
export class OutputBudget {
  readonly #buckets: Buckets | undefined
  readonly #minBytes: number

  /** 0: no limit. */
  constructor(bytesPerSecond: number) {
    this.#minBytes = Math.min(Math.max(bytesPerSecond, MIN_RESPONSE_BYTES), MIN_BURST_BYTES)
    const burst = Math.max(bytesPerSecond, MIN_BURST_BYTES)
    this.#buckets =
      bytesPerSecond === 0 ? undefined : new Buckets({ perSecond: bytesPerSecond, burst, max: MAX_ACCOUNTS })
  }

  /** Throws `rate_limited` when too little is left for a response. */
  check(account: string, nowMs: number): void {
    const retryAfterMs = this.#buckets?.waitMs(account, nowMs, this.#minBytes) ?? 0
    if (retryAfterMs > 0)
      throw new SandwireError('rate_limited', 'The output limit is reached', { retryAfterMs })
  }

  /** Takes up to `wantedBytes`; returns how many bytes may be sent. */
  take(account: string, wantedBytes: number, nowMs: number): number {
    return this.#buckets?.takeUpTo(account, wantedBytes, nowMs) ?? wantedBytes
  }
}
