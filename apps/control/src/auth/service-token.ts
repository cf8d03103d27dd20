import { ISSUED_SCOPES } from '@sandwire/operator-settings'
import { isEqualInConstantTime, sha256Hex } from '../bytes.ts'
import type { Config } from '../config.ts'
import type { AccountIds } from './account-id.ts'
import { type Identity, SCOPES, unauthorized } from './identity.ts'
import {
  type Claims,
  CLOCK_SKEW_MS,
  isJwtForm,
  type Jwt,
  nameOf,
  readClaims,
  scopesOf,
  timesOf,
  verifyJwt,
} from './jwt.ts'

/** The only algorithm of service tokens; a token with this algorithm is never anything else. */
export const SERVICE_ALGORITHM = 'HS256'
/** A key of HS256 must be as long as its hash (RFC 7518, section 3.2). */
const MIN_SECRET_BYTES = 32
/** A service can mint a new token at any time, so none needs to live longer. */
const MAX_LIFE_MS = 24 * 60 * 60_000
/** Expected in `aud`, if a token has one. */
const AUDIENCE = 'sandwire'
const LOGIN_CHARS = 32

/** A shorter API token could be guessed. */
const MIN_API_TOKEN_CHARS = 32
/** Prefix of the tokens that Sandwire issues. */
const OTHER_TOKENS = /^sw[a-z]_/

/** The account of a token: `sub`, or `userId` as older services name it. They must agree if both are given. */
function subjectOf({ sub, userId }: Claims): string {
  if (userId !== undefined && (typeof userId !== 'string' || userId === '' || userId.length > 255))
    throw unauthorized('claim "userId" is malformed')
  if (sub !== undefined && userId !== undefined && sub !== userId)
    throw unauthorized('"sub" and "userId" of the token differ')
  const subject = sub ?? userId
  if (subject === undefined) throw unauthorized('the token has no subject')
  return subject
}

/** Verifies tokens that another service of the operator signed with the shared secret. */
export function createServiceVerifier(
  secret: string,
  { accounts, nowMs }: { readonly accounts: AccountIds; readonly nowMs: () => number },
): (jwt: Jwt) => Promise<Identity> {
  const key = new TextEncoder().encode(secret)
  return async (jwt) => {
    const now = nowMs()
    const claims = readClaims(jwt)
    const audience = claims.aud === undefined ? {} : { audience: [AUDIENCE] }
    await verifyJwt(jwt, key, { algorithms: [SERVICE_ALGORITHM], nowMs: now, ...audience })
    const times = timesOf(claims, now)
    if (times.expiresMs > now + MAX_LIFE_MS + 2 * CLOCK_SKEW_MS)
      throw unauthorized('the lifetime of the token is too long')
    // The holder would have to prove possession of a key.
    if (claims.cnf !== undefined) throw unauthorized('the token is bound to a key')
    const { iss } = claims
    const account = await accounts.of('service', ...(iss === undefined ? [] : [iss]), subjectOf(claims))
    const login = (await sha256Hex(jwt.token)).slice(0, LOGIN_CHARS)
    const scopes = scopesOf(claims, ISSUED_SCOPES)
    return { account, name: nameOf(claims, account), scopes, via: 'bearer', login, ...times }
  }
}

/** Verifies the operator's API token, which has an account of its own. */
export function verifyApiToken(token: string, accounts: AccountIds): (shown: string) => Promise<Identity> {
  return async (shown) => {
    // Hashes of equal length are compared, so that timing reveals nothing about the token.
    if (!isEqualInConstantTime(await sha256Hex(shown), await sha256Hex(token)))
      throw unauthorized('the token is not accepted')
    return { account: await accounts.of('api'), name: 'API token', scopes: SCOPES, via: 'bearer' }
  }
}

/** Credentials of the operator's own services; those that are absent are not accepted. */
export interface Secrets {
  readonly jwtSecret?: string
  readonly apiToken?: string
}

/** Reads the secrets; an empty one is absent. */
export function readSecrets(env: { readonly JWT_SECRET?: string; readonly API_TOKEN?: string }): Secrets {
  const { JWT_SECRET: jwtSecret = '', API_TOKEN: apiToken = '' } = env
  return { ...(jwtSecret === '' ? {} : { jwtSecret }), ...(apiToken === '' ? {} : { apiToken }) }
}

function findApiTokenProblem(token: string): string | undefined {
  if (token.length < MIN_API_TOKEN_CHARS) return `API_TOKEN is shorter than ${MIN_API_TOKEN_CHARS} characters`
  if (!/^[\x21-\x7e]+$/.test(token)) return 'API_TOKEN has characters that are not allowed in a header'
  // The format selects the verifier, so this token would never be compared.
  if (OTHER_TOKENS.test(token) || isJwtForm(token)) return 'API_TOKEN has the format of another kind of token'
  return undefined
}

/** Why the server must not serve anyone, if so. A server that is reachable by others needs a way to authenticate them. */
export function findIdentityProblem(
  { mode, issuers }: Pick<Config, 'mode' | 'issuers'>,
  { jwtSecret, apiToken }: Secrets,
): string | undefined {
  if (jwtSecret !== undefined && new TextEncoder().encode(jwtSecret).byteLength < MIN_SECRET_BYTES)
    return `JWT_SECRET is shorter than ${MIN_SECRET_BYTES} bytes`
  const problem = apiToken === undefined ? undefined : findApiTokenProblem(apiToken)
  if (problem !== undefined) return problem
  const hasIdentity = issuers.length > 0 || jwtSecret !== undefined || apiToken !== undefined
  return mode === 'open' && !hasIdentity ? 'no identity issuer is configured' : undefined
}
