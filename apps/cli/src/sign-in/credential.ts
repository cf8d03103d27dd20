import { shape } from '@sandwire/protocol'
import type { SignInIssuer } from './auth-info.ts'
import type { IssuerEndpoints, Tokens } from './issuer-client.ts'

const token = shape.text(32 * 1024, /^[\x21-\x7e]+$/)
const address = shape.text(2048)

/** Who gave a bearer and gives the next one. It is kept, so that no server can say later where a secret goes. */
const renewalShape = shape.record({
  issuer: address,
  clientId: shape.text(256),
  tokenEndpoint: address,
  revocationEndpoint: shape.optional(address),
  /** What a token is asked for (RFC 8707). */
  resource: shape.optional(shape.text(1024)),
  /** Which of the issuer's tokens is shown to the server. */
  bearerKind: shape.oneOf(['access_token', 'id_token']),
  refreshToken: shape.optional(token),
})
type Renewal = shape.Decoded<typeof renewalShape>

const credentialShape = shape.record({
  version: shape.literal(1),
  /** The only origin that the bearer is sent to. */
  origin: address,
  bearer: token,
  /** When the bearer ends; absent when that is not known. */
  expiresMs: shape.optional(shape.offset),
  /** Absent: a guest's, which nobody renews. */
  renewal: shape.optional(renewalShape),
})

/** A sign-in at one server, as it is stored. */
export type Credential = shape.Decoded<typeof credentialShape>

/** Reads a stored sign-in; undefined when it is not one of this version. */
export function decodeCredential(text: string): Credential | undefined {
  try {
    return credentialShape.decode(JSON.parse(text))
  } catch {
    // Not JSON: the caller tells it like any other content that is not understood.
    return undefined
  }
}

/** Whether a token looks like one that others than its issuer can read. */
export function isJwt(token: string): boolean {
  return /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/.test(token)
}

/** What a JSON Web Token says. It is only read, never believed. */
function jwtClaim(jwt: string, claim: string): unknown {
  try {
    const payload: unknown = JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString('utf8'))
    return typeof payload === 'object' && payload !== null ? Reflect.get(payload, claim) : undefined
  } catch {
    // An opaque token says nothing.
    return undefined
  }
}

/** When a JSON Web Token says that it ends, to know when to ask for another; an opaque one does not say. */
export function jwtExpiryMs(jwt: string): number | undefined {
  const exp = jwtClaim(jwt, 'exp')
  return typeof exp === 'number' && Number.isFinite(exp) && exp >= 0 ? Math.floor(exp * 1000) : undefined
}

/** Whether the issuer says that both come from one sign-in of somebody in their browser. */
export function isSameSignIn(one: Credential, other: Credential): boolean {
  if (one.bearer === other.bearer) return true
  const sid = jwtClaim(one.bearer, 'sid')
  return (
    typeof sid === 'string' &&
    sid === jwtClaim(other.bearer, 'sid') &&
    one.renewal?.issuer === other.renewal?.issuer
  )
}

/** The token that the server wants, and when it ends: by this machine's clock where the issuer said for how long it lives. */
function bearerOf(
  kind: Renewal['bearerKind'],
  tokens: Tokens,
  nowMs: number,
): Pick<Credential, 'bearer' | 'expiresMs'> | undefined {
  const bearer = kind === 'id_token' ? tokens.idToken : tokens.accessToken
  if (bearer === undefined) return undefined
  const lives = kind === 'access_token' ? tokens.expiresInSeconds : undefined
  const expiresMs = lives === undefined ? jwtExpiryMs(bearer) : nowMs + Math.max(0, Math.floor(lives)) * 1000
  return expiresMs === undefined ? { bearer } : { bearer, expiresMs }
}

/** What to store after signing in; undefined when the issuer did not give the token that the server wants. */
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

/** What to store after a refresh. An issuer that does not rotate leaves the refresh token as it was. */
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

/** Where the issuer of a stored sign-in is asked. */
export function endpointsOf(renewal: Renewal): IssuerEndpoints {
  return {
    issuer: renewal.issuer,
    clientId: renewal.clientId,
    token: renewal.tokenEndpoint,
    revocation: renewal.revocationEndpoint,
  }
}
