import { TokenBucket } from '@sandwire/protocol'

/** A token bucket per key. Drops the least recently used bucket, so that memory is bounded. */
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

  /** Takes tokens of a key; false if there are fewer. */
  take(key: string, nowMs: number, count = 1): boolean {
    return this.#bucket(key, nowMs).take(count, nowMs)
  }

  /** Takes as many whole tokens as available, up to `wanted`; returns how many. */
  takeUpTo(key: string, wanted: number, nowMs: number): number {
    const bucket = this.#bucket(key, nowMs)
    const count = Math.min(wanted, Math.floor(bucket.available(nowMs)))
    bucket.take(count, nowMs)
    return count
  }

  /** Milliseconds until a key has this many tokens. */
  waitMs(key: string, nowMs: number, count = 1): number {
    return this.#bucket(key, nowMs).waitMs(count, nowMs)
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
