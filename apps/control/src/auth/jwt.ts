import { fromBase64Url } from '@sandwire/bytes'
import { ISSUED_SCOPES, type IssuedScope } from '@sandwire/operator-settings'
import { normalizeName } from '@sandwire/protocol'
import { type CryptoKey, errors, jwtVerify, type JWTVerifyGetKey, type JWTVerifyOptions } from 'jose'
import { z } from 'zod'
import { findDuplicateKey } from '../http/request-body.ts'
import { unauthorized } from './identity.ts'

/** Longest token that is parsed. */
export const MAX_TOKEN_BYTES = 8 * 1024
/** Allowed clock difference between an issuer and this server. */
export const CLOCK_SKEW_MS = 30_000
/** End of the year 9999. */
const MAX_DATE_SECONDS = 253_402_300_799
const MAX_TEXT_CHARS = 255
const MAX_AUDIENCES = 64
const MAX_NAME_CHARS = 64
const SCOPE_PREFIX = 'sandbox:'

/** Headers that supply a key or change the meaning of the signature. Stricter than jose, which ignores most of them. */
const REFUSED_HEADERS = ['crit', 'b64', 'zip', 'jku', 'jwk', 'x5u', 'x5c']

/** A parsed token; nothing in it is verified. */
export interface Jwt {
  readonly token: string
  readonly alg: string
  /** `typ` of the header in lower case; empty if absent, `?` if it is not a string. */
  readonly type: string
  readonly payload: Uint8Array
}

/** True if a bearer has the form of a JWT; `parseJwt` requires exactly three parts. */
export function isJwtForm(token: string): boolean {
  return token.split('.', 3).length === 3
}

/** Parses a JSON object in UTF-8. Stricter than jose: refuses a byte order mark and duplicate keys. */
function parseObject(bytes: Uint8Array): object | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return undefined
    return findDuplicateKey(text) === undefined ? parsed : undefined
  } catch {
    // Not JSON.
    return undefined
  }
}

/** Splits a token and parses its header. Stricter than jose: accepts canonical base64url only. */
export function parseJwt(token: string): Jwt {
  if (token.length > MAX_TOKEN_BYTES) throw unauthorized('the token is too long')
  const parts = token.split('.').map(fromBase64Url)
  const [head, payload, signature] = parts
  if (parts.length !== 3 || head === undefined || payload === undefined || signature === undefined)
    throw unauthorized('the token is malformed')
  const header = new Map<string, unknown>(Object.entries(parseObject(head) ?? {}))
  const alg = header.get('alg')
  if (typeof alg !== 'string') throw unauthorized('the token is malformed')
  if (REFUSED_HEADERS.some((name) => header.has(name)))
    throw unauthorized('the token has a header that is not allowed')
  const type = header.get('typ') ?? ''
  return { token, alg, type: typeof type === 'string' ? type.toLowerCase() : '?', payload }
}

const text = z.string().min(1).max(MAX_TEXT_CHARS)
const date = z.number().min(0).max(MAX_DATE_SECONDS)
/** One string with spaces, or a list. Anything else is refused, because no scopes at all means the defaults. */
const scopeList = z.union([z.string(), z.array(z.string())])

/** The claims that are read. Stricter than jose: bounded lengths and dates, an integer `exp`, only strings in `aud`. */
const claimsSchema = z.object({
  iss: text.optional(),
  sub: text.optional(),
  aud: z.union([z.string(), z.array(z.string()).max(MAX_AUDIENCES)]).optional(),
  azp: text.optional(),
  exp: date.int(),
  nbf: date.optional(),
  iat: date.optional(),
  nonce: z.unknown().optional(),
  scope: scopeList.optional(),
  scp: scopeList.optional(),
  permissions: scopeList.optional(),
  sid: z.unknown().optional(),
  jti: z.unknown().optional(),
  userId: z.unknown().optional(),
  name: z.unknown().optional(),
  preferred_username: z.unknown().optional(),
  email: z.unknown().optional(),
  client_id: z.unknown().optional(),
  at_hash: z.unknown().optional(),
  c_hash: z.unknown().optional(),
  cnf: z.unknown().optional(),
  typ: z.unknown().optional(),
})
export type Claims = Readonly<z.infer<typeof claimsSchema>>

/** Decodes the claims of a token that is not verified yet; throws `unauthorized` if one is malformed. */
export function readClaims({ payload }: Jwt): Claims {
  const claims = claimsSchema.safeParse(parseObject(payload))
  if (claims.success) return claims.data
  const [claim] = claims.error.issues[0]?.path ?? []
  throw unauthorized(claim === undefined ? 'the token is malformed' : `claim "${String(claim)}" is malformed`)
}

/** The audiences of `aud` as a list. */
export function audiencesOf({ aud }: Claims): readonly string[] {
  return aud === undefined ? [] : [aud].flat()
}

export interface JwtExpectation {
  readonly algorithms: readonly string[]
  /** Absent: any issuer. */
  readonly issuer?: string
  /** One of these must be in `aud`; absent: `aud` is not checked. */
  readonly audience?: readonly string[]
  readonly nowMs: number
}

function toUnauthorized(caught: unknown): unknown {
  if (caught instanceof errors.JWTExpired) return unauthorized('the token has expired', caught)
  if (caught instanceof errors.JWTClaimValidationFailed)
    return unauthorized(`claim "${caught.claim}" of the token is not accepted`, caught)
  if (caught instanceof errors.JOSEAlgNotAllowed)
    return unauthorized('the signature algorithm of the token is not allowed', caught)
  // jose throws a TypeError for a key that is too short or of another kind. Errors of the key lookup pass through.
  const isInvalid = caught instanceof errors.JOSEError || caught instanceof TypeError
  return isInvalid ? unauthorized('the signature of the token is not valid', caught) : caught
}

/** Verifies signature, `iss`, `aud`, `exp` and `nbf`; throws `unauthorized`. */
export async function verifyJwt(
  { token }: Jwt,
  key: CryptoKey | Uint8Array | JWTVerifyGetKey,
  { algorithms, issuer, audience, nowMs }: JwtExpectation,
): Promise<void> {
  const options: JWTVerifyOptions = {
    algorithms: [...algorithms],
    clockTolerance: CLOCK_SKEW_MS / 1000,
    currentDate: new Date(nowMs),
    requiredClaims: ['exp'],
    ...(issuer === undefined ? {} : { issuer }),
    ...(audience === undefined ? {} : { audience: [...audience] }),
  }
  try {
    await (typeof key === 'function' ? jwtVerify(token, key, options) : jwtVerify(token, key, options))
  } catch (caught) {
    throw toUnauthorized(caught)
  }
}

/** When a token expires, and when it was issued if it says so. */
export interface TokenTimes {
  readonly expiresMs: number
  readonly issuedMs?: number
}

/**
 * The lifetime of a token. Throws if it has expired, so that callers can refuse it before the issuer's keys are needed, or if
 * it was issued in the future, which jose does not check.
 */
export function timesOf({ exp, iat }: Claims, nowMs: number): TokenTimes {
  if ((iat ?? 0) * 1000 > nowMs + CLOCK_SKEW_MS) throw unauthorized('the token was issued in the future')
  // The moment from which the token is refused, so that no connection outlives it or ends early.
  const expiresMs = exp * 1000 + CLOCK_SKEW_MS
  if (expiresMs <= nowMs) throw unauthorized('the token has expired')
  return { expiresMs, ...(iat === undefined ? {} : { issuedMs: iat * 1000 }) }
}

/** The scopes that the token names as `sandbox:…`, or the defaults if it names none. */
export function scopesOf(
  { scope, scp, permissions }: Pick<Claims, 'scope' | 'scp' | 'permissions'>,
  defaults: readonly IssuedScope[],
): readonly IssuedScope[] {
  const named = [scope, scp, permissions]
    .flatMap((list) => (typeof list === 'string' ? list.split(' ') : (list ?? [])))
    .filter((item) => item.startsWith(SCOPE_PREFIX))
  if (named.length === 0) return defaults
  return ISSUED_SCOPES.filter((one) => named.includes(SCOPE_PREFIX + one))
}

/** The display name: one short line without control or direction characters; a part of the account id if there is none. */
export function nameOf(claims: Claims, account: string): string {
  for (const value of [claims.name, claims.preferred_username, claims.email]) {
    if (typeof value !== 'string') continue
    const name = normalizeName(value, MAX_NAME_CHARS)
    if (name !== '') return name
  }
  return account.slice(0, 8)
}
