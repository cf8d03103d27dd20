import { TokenBucket } from '@sandwire/protocol'

/** A token bucket for each of many; the one unused for longest is forgotten first, so that memory is bounded. */
export class Buckets {
  readonly #perSecond: number
  readonly #burst: number
  readonly #max: number
  readonly #buckets = new Map<string, TokenBucket>()

  constructor({ perSecond, burst, max }: { perSecond: number; burst: number; max: number }) {
    this.#perSecond = perSecond
    this.#burst = burst
    this.#max = max
  }

  /** Takes one of a key's tokens. */
  take(key: string, nowMs: number): boolean {
    return this.#bucket(key, nowMs).take(1, nowMs)
  }

  /** Milliseconds until a key has a token again. */
  waitMs(key: string, nowMs: number): number {
    return this.#bucket(key, nowMs).waitMs(1, nowMs)
  }

  #bucket(key: string, nowMs: number): TokenBucket {
    const bucket = this.#buckets.get(key) ?? new TokenBucket(this.#perSecond, this.#burst, nowMs)
    this.#buckets.delete(key)
    this.#buckets.set(key, bucket)
    const [oldest] = this.#buckets.keys()
    if (this.#buckets.size > this.#max && oldest !== undefined) this.#buckets.delete(oldest)
    return bucket
  }
}
