import { createHash } from 'node:crypto'

/** How long a sign-in link is valid. */
export const CODE_LIFE_MS = 10 * 60_000
/** Valid links at a time; the oldest is dropped. */
const MAX_CODES = 16
const CODE_BYTES = 24

function digest(code: string): string {
  return createHash('sha256').update(code).digest('hex')
}

/** Single-use codes for sign-in links. Stored as hashes, so that lookups leak nothing through timing. */
export class SignInCodes {
  readonly #expiryMs = new Map<string, number>()
  readonly #nowMs: () => number

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  mint(): string {
    const code = Buffer.from(crypto.getRandomValues(new Uint8Array(CODE_BYTES))).toString('base64url')
    for (const oldest of this.#expiryMs.keys()) {
      if (this.#expiryMs.size < MAX_CODES) break
      this.#expiryMs.delete(oldest)
    }
    this.#expiryMs.set(digest(code), this.#nowMs() + CODE_LIFE_MS)
    return code
  }

  /** True once for every minted code that has not expired. */
  redeem(code: string): boolean {
    const key = digest(code)
    const expiryMs = this.#expiryMs.get(key)
    this.#expiryMs.delete(key)
    return expiryMs !== undefined && this.#nowMs() < expiryMs
  }
}
