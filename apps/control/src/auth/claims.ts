import { ISSUED_SCOPES, type IssuedScope } from '@sandwire/operator-settings'
import { notAccepted } from './authenticator.ts'
import type { Members } from './jws.ts'

/** How far two clocks may be apart. */
export const SKEW_MS = 30_000
/** End of the year 9999, in seconds: what is later is no date. */
const MAX_DATE_SECONDS = 253_402_300_799
const MAX_SUBJECT_CHARS = 255
const MAX_AUDIENCES = 64
const MAX_NAME_CHARS = 64
const SCOPE_PREFIX = 'sandbox:'

function malformed(claim: string): never {
  throw notAccepted(`"${claim}" of the token is malformed`)
}

/** A text of a bounded length; throws when it is there and something else. */
export function textClaim(claims: Members, claim: string): string | undefined {
  const value = claims.get(claim)
  if (value === undefined) return undefined
  if (typeof value !== 'string' || value === '' || value.length > MAX_SUBJECT_CHARS) malformed(claim)
  return value
}

/** Seconds since 1970. Text, infinities and dates that cannot be are malformed. */
function dateClaim(claims: Members, claim: string): number | undefined {
  const value = claims.get(claim)
  if (value === undefined) return undefined
  if (typeof value !== 'number' || !(value >= 0 && value <= MAX_DATE_SECONDS)) malformed(claim)
  return value
}

/** When a token ends, and when it was issued if it says so. */
export interface TokenTimes {
  readonly expiresMs: number
  readonly issuedMs?: number
}

/** Whether the token is good now, and until when that is so. */
export function checkTimes(claims: Members, nowMs: number): TokenTimes {
  const expires = dateClaim(claims, 'exp')
  if (expires === undefined) throw notAccepted('the token does not say when it expires')
  if (!Number.isInteger(expires)) malformed('exp')
  // The very moment from which on the token is refused, so that nothing outlives it and nothing ends before.
  const expiresMs = expires * 1000 + SKEW_MS
  if (expiresMs <= nowMs) throw notAccepted('the token has expired')
  for (const claim of ['nbf', 'iat'])
    if ((dateClaim(claims, claim) ?? 0) * 1000 > nowMs + SKEW_MS)
      throw notAccepted('the token is not good yet')
  const issued = dateClaim(claims, 'iat')
  return { expiresMs, ...(issued === undefined ? {} : { issuedMs: issued * 1000 }) }
}

/** Whom the token is meant for: one or several. */
export function audiencesOf(claims: Members): readonly string[] {
  const value = claims.get('aud')
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  const texts = list.filter((item) => typeof item === 'string')
  if (value === undefined || texts.length !== list.length || texts.length > MAX_AUDIENCES)
    throw notAccepted('the token does not say whom it is meant for')
  return texts
}

/** Scopes are one text with spaces, or a list. Something else must not be taken for none: none can mean more. */
function itemsOf(claims: Members, claim: string): readonly string[] {
  const value = claims.get(claim)
  if (value === undefined) return []
  if (typeof value === 'string') return value.split(' ')
  const list: readonly unknown[] = Array.isArray(value) ? value : malformed(claim)
  return list.map((item) => (typeof item === 'string' ? item : malformed(claim)))
}

/** What the token is good for: exactly what it names of `sandbox:…`, or the defaults when it names nothing of the kind. */
export function scopesOf(claims: Members, defaults: readonly IssuedScope[]): readonly IssuedScope[] {
  const named = ['scope', 'scp', 'permissions']
    .flatMap((claim) => itemsOf(claims, claim))
    .filter((item) => item.startsWith(SCOPE_PREFIX))
  if (named.length === 0) return defaults
  return ISSUED_SCOPES.filter((scope) => named.includes(SCOPE_PREFIX + scope))
}

/** What others see of somebody: one short line without anything that steers a terminal or turns text around. */
export function nameOf(claims: Members, account: string): string {
  for (const claim of ['name', 'preferred_username', 'email']) {
    const value = claims.get(claim)
    if (typeof value !== 'string') continue
    // Half of a pair at the cut is removed with the rest of what is no character.
    const short = value
      .replaceAll(/[\p{C}\p{Z}]+/gu, ' ')
      .trim()
      .slice(0, MAX_NAME_CHARS)
    const name = short.replaceAll(/\p{C}/gu, '').trim()
    if (name !== '') return name
  }
  return account.slice(0, 8)
}
