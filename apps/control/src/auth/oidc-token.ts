import type { IssuerConfig } from '@sandwire/operator-settings'
import { isEqualInConstantTime, sha256Hex } from '../bytes.ts'
import type { AccountIds } from './account-id.ts'
import { type Identity, unauthorized } from './identity.ts'
import { type Fetch, IssuerClient } from './issuer-client.ts'
import {
  audiencesOf,
  type Claims,
  type Jwt,
  nameOf,
  parseJwt,
  readClaims,
  scopesOf,
  timesOf,
  verifyJwt,
} from './jwt.ts'

/** Enough of a hash to identify a sign-in. */
const LOGIN_CHARS = 32

/** RFC 9068 gives access tokens a type of their own; most issuers still write `JWT` or nothing. */
const ACCESS_TYPES = ['at+jwt', 'application/at+jwt']
const JWT_TYPES = ['', 'jwt', 'application/jwt']

function isAccessToken({ type }: Jwt, claims: Claims, clientId: string | undefined): boolean {
  if (ACCESS_TYPES.includes(type)) return true
  if (!JWT_TYPES.includes(type)) return false
  // Keycloak names the kind of a token in a claim: `Bearer`, `ID`, `Refresh` …
  if (claims.typ !== undefined) return claims.typ === 'Bearer'
  // Only ID tokens have these.
  if (claims.nonce !== undefined || claims.at_hash !== undefined || claims.c_hash !== undefined) return false
  // The audience of an ID token is the client. Where access tokens have it too, only their own claims tell them apart.
  const isForClient = clientId !== undefined && audiencesOf(claims).includes(clientId)
  return !isForClient || [claims.scope, claims.scp, claims.client_id].some((claim) => claim !== undefined)
}

function isIdToken({ type }: Jwt, claims: Claims, { clientId, audiences }: IssuerConfig): boolean {
  if (!JWT_TYPES.includes(type)) return false
  // An ID token that was issued to another client identifies its user only to that client.
  const { azp } = claims
  const isForUs = azp === undefined || azp === clientId || audiences.includes(azp)
  return isForUs && (claims.typ === undefined || claims.typ === 'ID')
}

/** Throws unless the token is of the kind that this issuer's bearers are, and not bound to a key. */
function checkKind(jwt: Jwt, claims: Claims, config: IssuerConfig): void {
  if (config.bearer === 'access_token') {
    if (!isAccessToken(jwt, claims, config.clientId)) throw unauthorized('not an access token')
  } else if (!isIdToken(jwt, claims, config)) throw unauthorized('not an ID token for this server')
  // The holder would have to prove possession of the key (RFC 7800).
  if (claims.cnf !== undefined) throw unauthorized('the token is bound to a key')
}

/**
 * Ids of the sign-in and, if the issuer does not name the sign-in, of the token. Without `sid` refreshed tokens cannot be
 * matched to each other, so signing out with one closes the connections of all of them.
 */
async function loginOf(issuer: string, claims: Claims): Promise<Pick<Identity, 'login' | 'token'>> {
  const { sub, sid, jti, iat, exp } = claims
  const hash = async (...parts: readonly unknown[]): Promise<string> =>
    (await sha256Hex(JSON.stringify([issuer, sub, ...parts]))).slice(0, LOGIN_CHARS)
  if (typeof sid === 'string') return { login: await hash('sid', sid) }
  const token = typeof jti === 'string' ? await hash('jti', jti) : await hash(iat, exp)
  return { login: await hash('tokens'), token }
}

export interface OidcDependencies {
  readonly accounts: AccountIds
  readonly fetchUrl: Fetch
  readonly nowMs: () => number
}

/** Verifies a token of a configured issuer. */
export type OidcVerifier = (jwt: Jwt) => Promise<Identity>

/** Verifies bearer tokens of these issuers, each with its own keys, algorithms and audiences. */
export function createOidcVerifier(
  issuers: readonly IssuerConfig[],
  { accounts, fetchUrl, nowMs }: OidcDependencies,
): OidcVerifier {
  const known = new Map(
    issuers.map((config) => [config.issuer, { config, client: new IssuerClient(config, fetchUrl, nowMs) }]),
  )
  return async (jwt) => {
    const claims = readClaims(jwt)
    const { config, client } = known.get(claims.iss ?? '') ?? {}
    if (config === undefined || client === undefined)
      throw unauthorized('the issuer of the token is not configured')
    if (claims.sub === undefined) throw unauthorized('the token has no subject')
    const now = nowMs()
    const times = timesOf(claims, now)
    checkKind(jwt, claims, config)
    const { issuer, algorithms, audiences } = config
    const expected = { algorithms, issuer, audience: audiences, nowMs: now }
    await verifyJwt(jwt, (header) => client.findKey(header), expected)
    const account = await accounts.of('oidc', issuer, claims.sub)
    const scopes = scopesOf(claims, config.defaultScopes)
    const login = await loginOf(issuer, claims)
    return { account, name: nameOf(claims, account), scopes, via: 'bearer', ...login, ...times }
  }
}

export interface IdTokenExpectation {
  readonly config: Pick<IssuerConfig, 'issuer' | 'algorithms'>
  readonly client: Pick<IssuerClient, 'findKey'>
  readonly clientId: string
  /** Sent with the authorization request of this sign-in. */
  readonly nonce: string
  readonly nowMs: number
}

/** Verifies the ID token of a sign-in at our client. */
export async function verifyIdToken(
  token: string,
  { config, client, clientId, nonce, nowMs }: IdTokenExpectation,
): Promise<Claims & { readonly sub: string }> {
  const jwt = parseJwt(token)
  const claims = readClaims(jwt)
  const { issuer, algorithms } = config
  const expected = { algorithms, issuer, audience: [clientId], nowMs }
  await verifyJwt(jwt, (header) => client.findKey(header), expected)
  timesOf(claims, nowMs)
  const { azp, sub } = claims
  // A token with several audiences must name the client that requested it.
  if (azp === undefined ? audiencesOf(claims).length !== 1 : azp !== clientId)
    throw unauthorized('the ID token was issued to another client')
  if (sub === undefined) throw unauthorized('the ID token has no subject')
  if (typeof claims.nonce !== 'string' || !isEqualInConstantTime(claims.nonce, nonce))
    throw unauthorized('the ID token belongs to another sign-in')
  return { ...claims, sub }
}
