/**
 * A rate with a burst: `take` succeeds while tokens are left, and they return at a steady rate. A clock that is set back gives
 * none, and from there on they return as before.
 */
export class TokenBucket {
  readonly #perSecond: number
  readonly #burst: number
  #tokens: number
  #atMs: number

  constructor(perSecond: number, burst: number, nowMs: number) {
    this.#perSecond = perSecond
    this.#burst = burst
    this.#tokens = burst
    this.#atMs = nowMs
  }

  /** Tokens there are now. */
  available(nowMs: number): number {
    const passedMs = Math.max(0, nowMs - this.#atMs)
    this.#tokens = Math.min(this.#burst, this.#tokens + (passedMs / 1000) * this.#perSecond)
    this.#atMs = nowMs
    return this.#tokens
  }

  /** Takes `count` tokens, or none when there are fewer. */
  take(count: number, nowMs: number): boolean {
    if (this.available(nowMs) < count) return false
    this.#tokens -= count
    return true
  }

  /** Milliseconds until `count` tokens will be there. */
  waitMs(count: number, nowMs: number): number {
    const missing = Math.min(count, this.#burst) - this.available(nowMs)
    return missing <= 0 ? 0 : Math.ceil((missing / this.#perSecond) * 1000)
  }
}
