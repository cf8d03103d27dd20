import { ISSUED_SCOPES } from '@sandwire/operator-settings'
import { sha256Hex } from '../bytes.ts'
import type { AccountIds } from './account-id.ts'
import { type Identity, notAccepted } from './authenticator.ts'
import { audiencesOf, checkTimes, nameOf, scopesOf, SKEW_MS, textClaim } from './claims.ts'
import { type Jws, type Members, readMembers, verifyJws } from './jws.ts'

/** The one algorithm, and no token with it is ever anything else. */
export const SERVICE_ALGORITHM = 'HS256'
/** A key of HS256 is as long as its hash, or it is the weakest part (RFC 7518, section 3.2). */
export const MIN_SECRET_BYTES = 32
/** Whoever holds the secret can make new ones, so none needs to live longer. */
const MAX_LIFE_MS = 24 * 60 * 60_000
/** Whom they are meant for, when they say. */
const AUDIENCE = 'sandwire'
const LOGIN_CHARS = 32

/** Whose it is: `sub`, or `userId` as services that came before spell it; not two at once. */
function subjectOf(claims: Members): string {
  const subject = textClaim(claims, 'sub')
  const userId = textClaim(claims, 'userId')
  if (subject !== undefined && userId !== undefined && subject !== userId)
    throw notAccepted('the token names two people')
  const found = subject ?? userId
  if (found === undefined) throw notAccepted('the token does not say whose it is')
  return found
}

/** Checks tokens that another service of the operator made with the secret that both know. */
export function serviceTokens(
  secret: string,
  { accounts, nowMs }: { readonly accounts: AccountIds; readonly nowMs: () => number },
): (jws: Jws) => Promise<Identity> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  return async (jws) => {
    const key = await crypto.subtle.importKey('raw', new TextEncoder().encode(secret), algorithm, false, [
      'verify',
    ])
    await verifyJws(jws, [SERVICE_ALGORITHM], key)
    const claims = readMembers(jws.payload)
    if (claims === undefined) throw notAccepted('the token is malformed')
    const times = checkTimes(claims, nowMs())
    if (times.expiresMs > nowMs() + MAX_LIFE_MS + 2 * SKEW_MS) throw notAccepted('the token lives too long')
    if (claims.has('aud') && !audiencesOf(claims).includes(AUDIENCE))
      throw notAccepted('the token is meant for somebody else')
    // Who has it could not prove so here.
    if (claims.has('cnf')) throw notAccepted('the token is bound to a key')
    const issuer = textClaim(claims, 'iss')
    const account = await accounts.of('service', ...(issuer === undefined ? [] : [issuer]), subjectOf(claims))
    const scopes = scopesOf(claims, ISSUED_SCOPES)
    const login = (await sha256Hex(jws.token)).slice(0, LOGIN_CHARS)
    return { account, name: nameOf(claims, account), scopes, via: 'bearer', login, ...times }
  }
}
