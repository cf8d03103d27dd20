import { SIGN_IN_LIFE_MS, type SpentState } from '../account/sign-ins.ts'
import type { Scope } from '../auth/authenticator.ts'
import { mintCookie, readClaim } from '../auth/browser-cookie.ts'
import { mintSecret } from '../bytes.ts'
import { unwrap } from '../outcome.ts'
import type { Directory } from '../sandbox/directory.ts'

/** Letters of a login's id: enough to be no other's. */
const LOGIN_CHARS = 22

export interface NewSignIn {
  readonly person: {
    readonly account: string
    readonly name: string
    readonly scopes: readonly Scope[]
    readonly issuer: string | null
    readonly voucher: string | null
  }
  readonly nowMs: number
  /** Of the login state that led here; none may lead here twice. */
  readonly state?: SpentState
}

/**
 * Signs a browser in under a new secret; returns its Set-Cookie header, and the login that it is known by. What the browser came with is never used again: it
 * ends, if it was a sign-in to the same account, so that a cookie planted before is worth nothing afterwards.
 */
export async function replaceSignIn(
  directory: Directory,
  headers: Headers,
  { person, nowMs, state }: NewSignIn,
): Promise<{ readonly cookie: string; readonly login: string }> {
  const { account, name, scopes, issuer, voucher } = person
  const object = directory.account(account)
  const { header, hash } = await mintCookie(account, SIGN_IN_LIFE_MS)
  const login = mintSecret().slice(0, LOGIN_CHARS)
  const times = { createdMs: nowMs, expiresMs: nowMs + SIGN_IN_LIFE_MS }
  const signIn = { login, name, scopes, issuer, voucher, ...times }
  unwrap(await object.signIn(signIn, hash, state))
  const old = await readClaim(headers)
  if (old?.account === account) {
    const known = unwrap(await object.findSignIn(old.hash))
    if (known !== null) unwrap(await object.signOut(known.login))
  }
  return { cookie: header, login }
}
