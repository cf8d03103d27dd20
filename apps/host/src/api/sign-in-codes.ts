import { createHash } from 'node:crypto'

/** How long a sign-in link works. */
export const CODE_LIFE_MS = 10 * 60_000
/** Links that can be open at a time; the oldest makes way. */
const MAX_CODES = 16
const CODE_BYTES = 24

function digest(code: string): string {
  return createHash('sha256').update(code).digest('hex')
}

/** Single-use codes for the sign-in link. Only their hashes are kept, so looking one up tells nothing by its time. */
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

  /** True once for every code that was minted and has not expired. */
  redeem(code: string): boolean {
    const key = digest(code)
    const expiryMs = this.#expiryMs.get(key)
    this.#expiryMs.delete(key)
    return expiryMs !== undefined && this.#nowMs() < expiryMs
  }
}
