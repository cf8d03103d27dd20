/**
 * Limits a rate with a burst: `take` succeeds while tokens are left, and tokens are refilled at a constant rate. A clock that is
 * set back refills none, and refilling continues from there.
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

  /** Tokens available now. */
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

  /** Milliseconds until `count` tokens are available. */
  waitMs(count: number, nowMs: number): number {
    const missing = Math.min(count, this.#burst) - this.available(nowMs)
    return missing <= 0 ? 0 : Math.ceil((missing / this.#perSecond) * 1000)
  }
}
