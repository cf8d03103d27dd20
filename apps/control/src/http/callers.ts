import { readClaim } from '../auth/browser-sign-in.ts'
import { sha256Hex } from '../bytes.ts'
import { addressOf, networkOf } from './client-address.ts'
import type { Caller } from './fair-queue.ts'

/** Credentials that are remembered; the least recently used is dropped first. */
const MAX_CREDENTIALS = 10_000

/** Hash of the bearer token or cookie of a request; undefined without one. */
async function hashCredential(headers: Headers): Promise<string | undefined> {
  const authorization = headers.get('authorization')
  if (authorization !== null) return sha256Hex(authorization)
  return (await readClaim(headers))?.hash
}

/**
 * Tells whose request one is before its credential is verified, by the credentials that were valid earlier. Decides only which
 * requests wait for each other, never what a request may do.
 */
export class Callers {
  /** Accounts by the hash of a credential. */
  readonly #accounts = new Map<string, string>()

  async find(request: Request): Promise<Caller> {
    const hash = await hashCredential(request.headers)
    const account = hash === undefined ? undefined : this.#accounts.get(hash)
    if (account !== undefined) return { group: 'account', key: account }
    return { group: hash === undefined ? 'anonymous' : 'unverified', key: networkOf(addressOf(request)) }
  }

  /** Remembers that the credential of a request is valid. */
  async add(request: Request, account: string): Promise<void> {
    const hash = await hashCredential(request.headers)
    if (hash === undefined) return
    this.#accounts.delete(hash)
    this.#accounts.set(hash, account)
    const [oldest] = this.#accounts.keys()
    if (this.#accounts.size > MAX_CREDENTIALS && oldest !== undefined) this.#accounts.delete(oldest)
  }
}
