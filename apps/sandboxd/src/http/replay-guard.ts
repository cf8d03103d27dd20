import { CLOCK_SKEW_MS, type InternalClaims } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'

/** Tokens remembered; at 500 requests a second a minute's worth of them. */
const MAX_REMEMBERED = 32_768

/** Remembers the tokens that were used, until they have expired by themselves, so that none is used twice. */
export class ReplayGuard {
  /** When each may be forgotten; in the order of use. */
  readonly #used = new Map<string, number>()
  readonly #maxRemembered: number

  constructor(maxRemembered: number = MAX_REMEMBERED) {
    this.#maxRemembered = maxRemembered
  }

  get size(): number {
    return this.#used.size
  }

  /** Throws `unauthorized` for a token that was used before, and `rate_limited` rather than forget one too early. */
  use(claims: InternalClaims, nowMs: number): void {
    const { requestId, issuedMs, method, path, expiresMs } = claims
    const key = new Bun.CryptoHasher('sha256')
      .update(JSON.stringify([requestId, issuedMs, method, path]))
      .digest('base64')
    const isKnown = this.#used.has(key)
    if (isKnown) throw new SandwireError('unauthorized', 'Cannot authenticate: the token was used before')
    if (this.#used.size >= this.#maxRemembered) this.#forgetExpired(nowMs)
    if (this.#used.size >= this.#maxRemembered)
      throw new SandwireError('rate_limited', 'Cannot take more requests now')
    this.#used.set(key, expiresMs + CLOCK_SKEW_MS)
  }

  #forgetExpired(nowMs: number): void {
    for (const [key, untilMs] of this.#used) if (untilMs < nowMs) this.#used.delete(key)
  }
}
