import { mintSecret, sha256Hex } from '../bytes.ts'
import type { AccountIds } from './account-id.ts'
import { type Authenticator, notAccepted, type Scope } from './authenticator.ts'
import { readCookie } from './cookies.ts'
import { guestName, isGuestLogin } from './guest-name.ts'

/** The prefix makes browsers refuse it from other hosts, from subdomains and without `Secure`. */
const COOKIE = '__Host-sandwire'
const VALUE = /^sws_([a-z0-9]{1,64})\.[A-Za-z0-9_-]{43}$/

/** What is known of a browser that signed in. */
export interface SignIn {
  /** Names it; not the credential. */
  readonly login: string
  /** As its person is called. */
  readonly name: string
  readonly scopes: readonly Scope[]
  /** Id of the issuer that said who it is; null: the host did, by a link. */
  readonly issuer: string | null
  /** Who that is, by `voucherOf`; null: the host. */
  readonly voucher: string | null
  readonly createdMs: number
  readonly expiresMs: number
}

/** What a request's cookie says: whose it claims to be, and the hash it is stored under. */
export interface CookieClaim {
  readonly account: string
  readonly hash: string
}

/** Whether there is something under the name of our cookie. */
export function hasClaim(headers: Headers): boolean {
  return readCookie(headers, COOKIE) !== undefined
}

/** Reads our cookie. Undefined: there is none. Null: there is something else under its name. */
export async function readClaim(headers: Headers): Promise<CookieClaim | null | undefined> {
  const value = readCookie(headers, COOKIE)
  if (value === undefined) return undefined
  const account = VALUE.exec(value)?.[1]
  return account === undefined ? null : { account, hash: await sha256Hex(value) }
}

/** What a request's cookie says, as a list of at most one. */
export async function claimsOf(headers: Headers): Promise<readonly CookieClaim[]> {
  const claim = await readClaim(headers)
  return claim === undefined || claim === null ? [] : [claim]
}

/** A new cookie for a browser of this account: what the browser is told, and the hash to remember it by. */
export async function mintCookie(account: string, lifeMs: number): Promise<{ header: string; hash: string }> {
  const value = `sws_${account}.${mintSecret()}`
  const header = `${COOKIE}=${value}; Path=/; Max-Age=${Math.floor(lifeMs / 1000)}; HttpOnly; Secure; SameSite=Strict`
  return { header, hash: await sha256Hex(value) }
}

/** Tells the browser to forget its cookie. */
export const FORGET_COOKIE = `${COOKIE}=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Strict`

export interface CookieDependencies {
  readonly accounts: Pick<AccountIds, 'isMinted'>
  /** Asks the account's object. */
  readonly find: (claim: CookieClaim) => Promise<SignIn | null>
  /** Whether who said so is still believed. */
  readonly isTrusted: (signIn: SignIn) => boolean
}

/** Accepts browsers that signed in. A cookie that names an invented account touches no object. */
export function browserCookie({ accounts, find, isTrusted }: CookieDependencies): Authenticator {
  return {
    async authenticate(headers) {
      const claim = await readClaim(headers)
      if (claim === undefined) return undefined
      const signIn = claim !== null && (await accounts.isMinted(claim.account)) ? await find(claim) : null
      if (claim === null || signIn === null || !isTrusted(signIn))
        throw notAccepted('the sign-in has expired')
      const { scopes, login, expiresMs } = signIn
      const name = isGuestLogin(login) ? guestName(signIn.name) : signIn.name
      return { account: claim.account, name, scopes, via: 'cookie', login, expiresMs }
    },
  }
}
