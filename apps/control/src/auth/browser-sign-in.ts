import type { IssuerConfig } from '@sandwire/operator-settings'
import { mintSecret, sha256Hex } from '../bytes.ts'
import type { Config } from '../config.ts'
import type { AccountIds } from './account-id.ts'
import { type Authenticator, guestName, isGuestLogin, type Scope, unauthorized } from './identity.ts'

/** The prefix makes browsers refuse it from other hosts, from subdomains and without `Secure`. */
const COOKIE = '__Host-sandwire'
const VALUE = /^sws_([a-z0-9]{1,64})\.[A-Za-z0-9_-]{43}$/

/** A stored sign-in of a browser or a guest. */
export interface SignIn {
  /** Its id; not the credential. */
  readonly login: string
  /** Display name of the user. */
  readonly name: string
  readonly scopes: readonly Scope[]
  /** Id of the issuer in the settings; null: a sign-in link of the host. */
  readonly issuer: string | null
  /** The issuer and client, by `issuerBindingOf`; null: the host. */
  readonly issuerBinding: string | null
  readonly createdMs: number
  readonly expiresMs: number
}

/** The account that a request's cookie claims, and the hash under which its sign-in is stored. */
export interface CookieClaim {
  readonly account: string
  readonly hash: string
}

/** Value of a cookie; undefined if absent, empty if given twice, because then one of them is not ours. */
export function readCookie(headers: Headers, name: string): string | undefined {
  const values = (headers.get('cookie') ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1))
  const [value] = values
  return values.length > 1 ? '' : value
}

/** True if a cookie with our name was sent, valid or not. */
export function hasSignInCookie(headers: Headers): boolean {
  return readCookie(headers, COOKIE) !== undefined
}

/** Reads our cookie. Undefined: absent. Null: malformed. */
export async function readClaim(headers: Headers): Promise<CookieClaim | null | undefined> {
  const value = readCookie(headers, COOKIE)
  if (value === undefined) return undefined
  const account = VALUE.exec(value)?.[1]
  return account === undefined ? null : { account, hash: await sha256Hex(value) }
}

/** The well-formed claim of a request, as a list of at most one. */
export async function claimsOf(headers: Headers): Promise<readonly CookieClaim[]> {
  const claim = await readClaim(headers)
  return claim === undefined || claim === null ? [] : [claim]
}

/** A new cookie for a browser of this account: the `Set-Cookie` header, and the hash to store. */
export async function mintCookie(account: string, lifeMs: number): Promise<{ header: string; hash: string }> {
  const value = `sws_${account}.${mintSecret()}`
  const header = `${COOKIE}=${value}; Path=/; Max-Age=${Math.floor(lifeMs / 1000)}; HttpOnly; Secure; SameSite=Strict`
  return { header, hash: await sha256Hex(value) }
}

/** `Set-Cookie` header that deletes the cookie. */
export const CLEAR_COOKIE = `${COOKIE}=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Strict`

export interface CookieDependencies {
  readonly accounts: Pick<AccountIds, 'isMinted'>
  /** Looks the sign-in up in the account's object. */
  readonly find: (claim: CookieClaim) => Promise<SignIn | null>
  readonly isTrusted: (signIn: SignIn) => boolean
}

/** Authenticates signed-in browsers. A cookie with an invented account id reaches no object. */
export function createCookieAuthenticator({ accounts, find, isTrusted }: CookieDependencies): Authenticator {
  return {
    async authenticate(headers) {
      const claim = await readClaim(headers)
      if (claim === undefined) return undefined
      const signIn = claim !== null && (await accounts.isMinted(claim.account)) ? await find(claim) : null
      if (claim === null || signIn === null || !isTrusted(signIn))
        throw unauthorized('the sign-in has expired')
      const { scopes, login, expiresMs } = signIn
      const name = isGuestLogin(login) ? guestName(signIn.name) : signIn.name
      return { account: claim.account, name, scopes, via: 'cookie', login, expiresMs }
    },
  }
}

type Issuer = Pick<IssuerConfig, 'issuer' | 'clientId'>
type TrustSettings = Pick<Config, 'mode' | 'localTokenSha256'> & { readonly issuers: readonly Issuer[] }

/**
 * Identifies the issuer and our client there. Stored with a sign-in, which ends when either changes in the settings; the
 * issuer's id would not do, because the operator can give it to another issuer.
 */
export function issuerBindingOf({ issuer, clientId }: Issuer): string {
  return JSON.stringify([issuer, clientId ?? null])
}

/** On one machine without issuers, share links can be used without an account. */
export function acceptsGuests({ mode, localTokenSha256, issuers }: TrustSettings): boolean {
  return mode === 'local' && localTokenSha256 !== undefined && issuers.length === 0
}

/** True if the issuer of a sign-in is still in the settings; for a sign-in without one, if the local identity is. */
export function isTrustedSignIn(
  { login, issuer, issuerBinding }: Pick<SignIn, 'login' | 'issuer' | 'issuerBinding'>,
  settings: TrustSettings,
): boolean {
  if (isGuestLogin(login)) return acceptsGuests(settings)
  if (issuer === null) return settings.localTokenSha256 !== undefined
  return settings.issuers.some((known) => issuerBindingOf(known) === issuerBinding)
}
