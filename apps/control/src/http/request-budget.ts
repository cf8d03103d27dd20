import { TokenBucket } from '@sandwire/protocol'

/** Requests of one identity: far above what people and tools do, far below what hurts. */
const PER_SECOND = 500
const BURST = 2_000
/** Requests without a good credential, all of them together. */
const STRANGERS_PER_SECOND = 50
const STRANGERS_BURST = 200
/** Identities remembered; the oldest is forgotten first. */
const MAX_IDENTITIES = 1_000

/** How much each identity may ask for. Strangers have a budget of their own, so that they cannot use up anybody's. */
export class RequestBudget {
  readonly #buckets = new Map<string, TokenBucket>()
  #strangers: TokenBucket | undefined

  take(identity: string, nowMs: number): boolean {
    const bucket = this.#buckets.get(identity) ?? new TokenBucket(PER_SECOND, BURST, nowMs)
    this.#buckets.delete(identity)
    this.#buckets.set(identity, bucket)
    const [oldest] = this.#buckets.keys()
    if (this.#buckets.size > MAX_IDENTITIES && oldest !== undefined) this.#buckets.delete(oldest)
    return bucket.take(1, nowMs)
  }

  takeAsStranger(nowMs: number): boolean {
    this.#strangers ??= new TokenBucket(STRANGERS_PER_SECOND, STRANGERS_BURST, nowMs)
    return this.#strangers.take(1, nowMs)
  }
}
