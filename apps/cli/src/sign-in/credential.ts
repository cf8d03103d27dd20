import { schema } from '@sandwire/protocol'
import type { JWTPayload } from 'jose'
import { decodeJwt } from 'jose/jwt/decode'
import type { SignInIssuer } from './issuer-info.ts'
import type { IssuerEndpoints, Tokens } from './issuer-client.ts'

const token = schema.text(32 * 1024, /^[\x21-\x7e]+$/)
const address = schema.text(2048)

/** How to renew a bearer. Stored, so that a server cannot change later where a refresh token is sent. */
const renewalSchema = schema.record({
  issuer: address,
  clientId: schema.text(256),
  tokenEndpoint: address,
  revocationEndpoint: schema.optional(address),
  /** Resource indicator of token requests (RFC 8707). */
  resource: schema.optional(schema.text(1024)),
  /** Which token of the issuer is sent to the server. */
  bearerKind: schema.oneOf(['access_token', 'id_token']),
  refreshToken: schema.optional(token),
})
type Renewal = schema.Decoded<typeof renewalSchema>

const credentialSchema = schema.record({
  version: schema.literal(1),
  /** The only origin that the bearer is sent to. */
  origin: address,
  bearer: token,
  /** Expiry of the bearer; absent if unknown. */
  expiresMs: schema.optional(schema.nonNegativeInteger),
  /** Absent for guests, whose token cannot be renewed. */
  renewal: schema.optional(renewalSchema),
})

/** A stored sign-in to one server. */
export type Credential = schema.Decoded<typeof credentialSchema>

/** Decodes a stored sign-in; undefined for invalid content or another version. */
export function decodeCredential(text: string): Credential | undefined {
  try {
    return credentialSchema.decode(JSON.parse(text))
  } catch {
    // Not JSON: reported by the caller like any other invalid content.
    return undefined
  }
}

/** Decodes the claims of a JWT without verifying it; undefined for opaque tokens. */
function decodeClaims(token: string): JWTPayload | undefined {
  try {
    return decodeJwt(token)
  } catch {
    // An opaque token.
    return undefined
  }
}

/** Why a token is not sent to a server that names this issuer: only the issuer can read it, or another one issued it. */
export function findTokenProblem(token: string, issuer: string): 'opaque' | 'otherIssuer' | undefined {
  const claims = decodeClaims(token)
  if (claims === undefined) return 'opaque'
  return claims.iss === issuer ? undefined : 'otherIssuer'
}

/** True if a server that accepts the bearer of one may accept that of the other: same issuer and a common audience. */
export function hasSameAudience(one: Credential, other: Credential): boolean {
  const [a, b] = [decodeClaims(one.bearer), decodeClaims(other.bearer)]
  if (a?.iss === undefined || a.iss !== b?.iss) return false
  // A token without an audience is for every server.
  if (a.aud === undefined || b.aud === undefined) return true
  const audiences = new Set([b.aud].flat())
  return [a.aud].flat().some((audience) => audiences.has(audience))
}

/** True if these endpoints give out tokens of the same issuer to the same client as a stored sign-in. */
export function isSameClient({ renewal }: Credential, { issuer, clientId, token }: IssuerEndpoints): boolean {
  if (renewal?.clientId !== clientId) return false
  return renewal.issuer === issuer || new URL(renewal.tokenEndpoint).href === new URL(token).href
}

/** The `exp` claim in milliseconds; undefined for opaque tokens. */
export function jwtExpiryMs(jwt: string): number | undefined {
  const exp = decodeClaims(jwt)?.exp
  return typeof exp === 'number' && Number.isFinite(exp) && exp >= 0 ? Math.floor(exp * 1000) : undefined
}

/** True if both belong to the same session at the issuer. */
export function isSameSignIn(one: Credential, other: Credential): boolean {
  if (one.bearer === other.bearer) return true
  const sid = decodeClaims(one.bearer)?.['sid']
  return (
    typeof sid === 'string' &&
    sid === decodeClaims(other.bearer)?.['sid'] &&
    one.renewal?.issuer === other.renewal?.issuer
  )
}

/** The token for the server, and its expiry: by the local clock if the issuer gave a lifetime. */
function bearerOf(
  kind: Renewal['bearerKind'],
  tokens: Tokens,
  nowMs: number,
): Pick<Credential, 'bearer' | 'expiresMs'> | undefined {
  const bearer = kind === 'id_token' ? tokens.idToken : tokens.accessToken
  if (bearer === undefined) return undefined
  const lifetimeSeconds = kind === 'access_token' ? tokens.expiresInSeconds : undefined
  const expiresMs =
    lifetimeSeconds === undefined
      ? jwtExpiryMs(bearer)
      : nowMs + Math.max(0, Math.floor(lifetimeSeconds)) * 1000
  return expiresMs === undefined ? { bearer } : { bearer, expiresMs }
}

/** The credential to store after signing in; undefined if the issuer did not return the token that the server needs. */
export function createCredential(
  origin: string,
  { info, endpoints }: { readonly info: SignInIssuer; readonly endpoints: IssuerEndpoints },
  tokens: Tokens,
  nowMs: number,
): Credential | undefined {
  const bearer = bearerOf(info.bearer, tokens, nowMs)
  if (bearer === undefined) return undefined
  const resource = info.requestParameters?.['resource']
  const renewal: Renewal = {
    issuer: endpoints.issuer,
    clientId: endpoints.clientId,
    tokenEndpoint: endpoints.token,
    ...(endpoints.revocation === undefined ? {} : { revocationEndpoint: endpoints.revocation }),
    ...(resource === undefined ? {} : { resource }),
    bearerKind: info.bearer,
    ...(tokens.refreshToken === undefined ? {} : { refreshToken: tokens.refreshToken }),
  }
  return { version: 1, origin, ...bearer, renewal }
}

/** The credential to store after a refresh. Without rotation, the refresh token stays the same. */
export function renewCredential(
  { origin, renewal }: { readonly origin: string; readonly renewal: Renewal },
  tokens: Tokens,
  nowMs: number,
): Credential | undefined {
  const bearer = bearerOf(renewal.bearerKind, tokens, nowMs)
  if (bearer === undefined) return undefined
  const rotated = tokens.refreshToken === undefined ? {} : { refreshToken: tokens.refreshToken }
  return { version: 1, origin, ...bearer, renewal: { ...renewal, ...rotated } }
}

/** The endpoints of the issuer of a stored sign-in. */
export function endpointsOf(renewal: Renewal): IssuerEndpoints {
  return {
    issuer: renewal.issuer,
    clientId: renewal.clientId,
    token: renewal.tokenEndpoint,
    revocation: renewal.revocationEndpoint,
  }
}
