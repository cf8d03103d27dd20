import type { IssuerConfig } from '@sandwire/operator-settings'
import { type Authenticator, type Identity, signInEnded, unauthorized } from './identity.ts'
import { isJwtForm, type Jwt, MAX_TOKEN_BYTES, parseJwt } from './jwt.ts'
import { isLocalToken, verifyLocalToken } from './local-identity.ts'
import { createOidcVerifier, type OidcDependencies } from './oidc-token.ts'
import { createServiceVerifier, SERVICE_ALGORITHM, verifyApiToken } from './service-token.ts'

/** The scheme is case-insensitive (RFC 9110, section 11.1). */
const BEARER = /^bearer +(\S+)$/i

/** The bearer tokens that are accepted; none of a kind that is absent. */
export interface BearerSettings {
  readonly localTokenSha256?: string
  readonly apiToken?: string
  readonly jwtSecret?: string
  readonly issuers: readonly IssuerConfig[]
}

/** Authenticates `Authorization: Bearer …`. The token's format alone selects the verifier. */
export function createBearerAuthenticator(settings: BearerSettings, deps: OidcDependencies): Authenticator {
  const { localTokenSha256, apiToken, jwtSecret, issuers } = settings
  const refuse = (): Promise<Identity> => Promise.reject(unauthorized('the token is not accepted'))
  const verifyLocal = localTokenSha256 === undefined ? refuse : verifyLocalToken(localTokenSha256)
  const verifyApi = apiToken === undefined ? refuse : verifyApiToken(apiToken, deps.accounts)
  const verifyService = jwtSecret === undefined ? refuse : createServiceVerifier(jwtSecret, deps)
  const verifyOidc = createOidcVerifier(issuers, deps)
  const verifyJwt = (jwt: Jwt): Promise<Identity> =>
    jwt.alg === SERVICE_ALGORITHM ? verifyService(jwt) : verifyOidc(jwt)
  return {
    async authenticate(headers) {
      const header = headers.get('authorization')
      if (header === null) return undefined
      const token = BEARER.exec(header)?.[1]
      if (token === undefined) return refuse()
      if (token.length > MAX_TOKEN_BYTES) throw unauthorized('the token is too long')
      if (isLocalToken(token)) return verifyLocal(token)
      return isJwtForm(token) ? verifyJwt(parseJwt(token)) : verifyApi(token)
    },
  }
}

/** Uses the first authenticator that finds its kind of credential. */
export function firstOf(authenticators: readonly Authenticator[]): Authenticator {
  return {
    async authenticate(headers) {
      for (const authenticator of authenticators) {
        const identity = await authenticator.authenticate(headers)
        if (identity !== undefined) return identity
      }
      return undefined
    },
  }
}

/** Asks the account whether a valid token was revoked by a sign-out or by deleting the account. */
export type IsSignInActive = (
  account: string,
  token: { readonly login: string; readonly issuedMs?: number },
) => Promise<boolean>

/** Refuses credentials whose sign-in has ended. A credential without a sign-in cannot be ended. */
export function refuseEndedSignIns(inner: Authenticator, isActive: IsSignInActive): Authenticator {
  const check = async ({ account, login, token = login, issuedMs }: Identity): Promise<void> => {
    if (token === undefined) return
    if (!(await isActive(account, { login: token, ...(issuedMs === undefined ? {} : { issuedMs }) })))
      throw signInEnded()
  }
  return {
    async authenticate(headers) {
      const identity = await inner.authenticate(headers)
      if (identity !== undefined) await check(identity)
      return identity
    },
  }
}
