import { SIGN_IN_LIFE_MS, type SpentState } from '../account/sign-ins.ts'
import type { Scope } from '../auth/authenticator.ts'
import type { AccountIds } from '../auth/account-id.ts'
import { type CookieClaim, mintCookie } from '../auth/browser-cookie.ts'
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

export interface SignInPlace {
  readonly directory: Directory
  readonly accounts: Pick<AccountIds, 'isMinted'>
}

/**
 * Signs a browser in under a new secret; returns its Set-Cookie header, and the login that it is known by. What the browser came with is never used again:
 * it ends, whoever it was of, since a cookie planted before must be worth nothing afterwards, and one that is replaced has no holder any more.
 */
export async function replaceSignIn(
  { directory, accounts }: SignInPlace,
  before: readonly CookieClaim[],
  { person, nowMs, state }: NewSignIn,
): Promise<{ readonly cookie: string; readonly login: string }> {
  const { account, name, scopes, issuer, voucher } = person
  const object = directory.account(account)
  const { header, hash } = await mintCookie(account, SIGN_IN_LIFE_MS)
  const login = mintSecret().slice(0, LOGIN_CHARS)
  const times = { createdMs: nowMs, expiresMs: nowMs + SIGN_IN_LIFE_MS }
  const signIn = { login, name, scopes, issuer, voucher, ...times }
  unwrap(await object.signIn(signIn, hash, state))
  for (const old of before) {
    if (!(await accounts.isMinted(old.account))) continue
    const owner = directory.account(old.account)
    const known = unwrap(await owner.findSignIn(old.hash))
    if (known !== null) unwrap(await owner.signOut(known.login))
  }
  return { cookie: header, login }
}
