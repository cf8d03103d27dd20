import type { IssuerConfig } from '@sandwire/operator-settings'
import { notAccepted } from './authenticator.ts'
import { audiencesOf } from './claims.ts'
import type { Jws, Members } from './jws.ts'

/** RFC 9068 gives access tokens a type of their own; most issuers still write `JWT`, or nothing. */
const ACCESS_TYPES = ['at+jwt', 'application/at+jwt']
const PLAIN_TYPES = ['jwt', 'application/jwt']

/** What only ID tokens have: the answer to a sign-in, and hashes of what came with them. */
const ID_CLAIMS = ['nonce', 'at_hash', 'c_hash']
/** What ID tokens do not have: what they are good for, and for which client. */
const ACCESS_CLAIMS = ['scope', 'scp', 'client_id']

/** `typ` of the header in lower case; empty when there is none. */
function typeOf({ header }: Jws): string {
  const type = header.get('typ') ?? ''
  return typeof type === 'string' ? type.toLowerCase() : '?'
}

/** Keycloak says in a claim what a token is: `Bearer`, `ID`, `Refresh` … */
function isSaidToBe(claims: Members, kind: string): boolean | undefined {
  return claims.has('typ') ? claims.get('typ') === kind : undefined
}

function isAccessToken(jws: Jws, claims: Members, clientId: string | undefined): boolean {
  const type = typeOf(jws)
  if (ACCESS_TYPES.includes(type)) return true
  if (type !== '' && !PLAIN_TYPES.includes(type)) return false
  const isBearer = isSaidToBe(claims, 'Bearer')
  if (isBearer !== undefined) return isBearer
  if (ID_CLAIMS.some((claim) => claims.has(claim))) return false
  // An ID token is meant for the client. Where access tokens are too, only what they carry tells them apart.
  const isForClient = clientId !== undefined && audiencesOf(claims).includes(clientId)
  return !isForClient || ACCESS_CLAIMS.some((claim) => claims.has(claim))
}

function isIdToken(jws: Jws, claims: Members, { clientId, audiences }: IssuerConfig): boolean {
  const type = typeOf(jws)
  if (type !== '' && !PLAIN_TYPES.includes(type)) return false
  // Given to another client, it says who somebody is there.
  const party = claims.get('azp')
  const isForUs =
    party === undefined || party === clientId || audiences.some((audience) => audience === party)
  return isForUs && (isSaidToBe(claims, 'ID') ?? true)
}

/** Refuses a token of another kind than the issuer's bearers are, and one that is bound to a key. */
export function checkKind(jws: Jws, claims: Members, config: IssuerConfig): void {
  const isKind =
    config.bearer === 'access_token'
      ? isAccessToken(jws, claims, config.clientId)
      : isIdToken(jws, claims, config)
  if (!isKind)
    throw notAccepted(config.bearer === 'access_token' ? 'not an access token' : 'not an ID token for us')
  // Its holder has to prove that it has the key (RFC 7800), which a bearer does not.
  if (claims.has('cnf')) throw notAccepted('the token is bound to a key')
}
