/** Scopes that tokens of an issuer can have; administration is not one of them. */
export const ISSUED_SCOPES = ['connect', 'exec', 'admin'] as const
export type IssuedScope = (typeof ISSUED_SCOPES)[number]

/** Accepted signature algorithms: asymmetric only, so that verifying a token does not allow issuing one. */
export const ISSUER_ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA'] as const
export type IssuerAlgorithm = (typeof ISSUER_ALGORITHMS)[number]

/** An OpenID Connect issuer. */
export interface IssuerConfig {
  /** Id in URLs and on the command line: `[a-z0-9-]{1,32}`. */
  readonly id: string
  /** Display name. */
  readonly name: string
  /** Exactly as in the `iss` claim of its tokens. */
  readonly issuer: string
  /** Accepted values of the `aud` claim. */
  readonly audiences: readonly string[]
  readonly algorithms: readonly IssuerAlgorithm[]
  /** Scopes of tokens that contain none of ours, since most issuers cannot include them. */
  readonly defaultScopes: readonly IssuedScope[]
  /** Client id for sign-in in browsers and on the command line; without it only tokens are accepted. */
  readonly clientId?: string
  /** Scopes requested at sign-in. */
  readonly requestScopes: readonly string[]
  /** Further parameters of the authorization request; some issuers need them to set the audience. */
  readonly requestParameters?: Readonly<Record<string, string>>
  /** Which token identifies the user: access tokens of some issuers are opaque. */
  readonly bearer: 'access_token' | 'id_token'
  /** Endpoints that override its metadata. */
  readonly endpoints: IssuerEndpoints
}

export interface IssuerEndpoints {
  readonly jwks?: string
  readonly authorization?: string
  readonly token?: string
  readonly deviceAuthorization?: string
  readonly revocation?: string
}

/** True for HTTPS and for loopback URLs. */
export function isSecureUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, username, password } = new URL(text)
  return (
    (protocol === 'https:' || (protocol === 'http:' && isLoopbackUrl(text))) && username + password === ''
  )
}

/** True for a loopback URL. */
export function isLoopbackUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  return ['localhost', '127.0.0.1', '[::1]'].includes(new URL(text).hostname)
}
