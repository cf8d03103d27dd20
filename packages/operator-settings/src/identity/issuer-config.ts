/** What a credential of an issuer can be good for; looking after the server is not among it. */
export const ISSUED_SCOPES = ['connect', 'exec', 'admin'] as const
export type IssuedScope = (typeof ISSUED_SCOPES)[number]

/** How tokens may be signed: public keys only, so that who can check a token cannot make one. */
export const ISSUER_ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA'] as const
export type IssuerAlgorithm = (typeof ISSUER_ALGORITHMS)[number]

/** Somebody who says who people are. */
export interface IssuerConfig {
  /** Names it in URLs and on the command line: `[a-z0-9-]{1,32}`. */
  readonly id: string
  /** As people know it. */
  readonly name: string
  /** To the letter as its tokens say it. */
  readonly issuer: string
  /** Tokens must be meant for one of these. */
  readonly audiences: readonly string[]
  readonly algorithms: readonly IssuerAlgorithm[]
  /** What its tokens are good for when they name none of ours, as most issuers cannot. */
  readonly defaultScopes: readonly IssuedScope[]
  /** Our client there, in browsers and on the command line; absent: no sign-in through us, tokens only. */
  readonly clientId?: string
  /** Asked of it at sign-in. */
  readonly requestScopes: readonly string[]
  /** Sent along when a sign-in begins; some issuers must be told so what a token is for. */
  readonly requestParameters?: Readonly<Record<string, string>>
  /** Which of its tokens says who somebody is: some issuers' access tokens are not for others to read. */
  readonly bearer: 'access_token' | 'id_token'
  /** Where its metadata is missing or wrong. */
  readonly endpoints: IssuerEndpoints
}

export interface IssuerEndpoints {
  readonly jwks?: string
  readonly authorization?: string
  readonly token?: string
  readonly deviceAuthorization?: string
  readonly revocation?: string
}

/** Credentials and keys go there, so it is HTTPS, or this machine. */
export function isSecureUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, username, password } = new URL(text)
  return (
    (protocol === 'https:' || (protocol === 'http:' && isLoopbackUrl(text))) && username + password === ''
  )
}

/** Whether a URL leads to this machine and nowhere else. */
export function isLoopbackUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  return ['localhost', '127.0.0.1', '[::1]'].includes(new URL(text).hostname)
}
