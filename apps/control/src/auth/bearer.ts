import type { IssuerConfig } from '@sandwire/operator-settings'
import { type Authenticator, type Identity, notAccepted } from './authenticator.ts'
import { apiToken } from './api-token.ts'
import { type Jws, MAX_TOKEN_BYTES, readJws } from './jws.ts'
import { isLocalToken, localToken } from './local-token.ts'
import { type OidcDependencies, oidcTokens } from './oidc.ts'
import { SERVICE_ALGORITHM, serviceTokens } from './service-token.ts'

/** The scheme in any case, as RFC 9110, section 11.1, has it. */
const BEARER = /^bearer +(\S+)$/i

/** What says who the holder of a bearer is; what is absent accepts nobody. */
export interface BearerSettings {
  readonly localTokenSha256?: string
  readonly apiToken?: string
  readonly jwtSecret?: string
  readonly issuers: readonly IssuerConfig[]
}

/** Whether a bearer has the form of a JWT, good or bad. */
export function isJwtForm(token: string): boolean {
  return token.split('.', 3).length === 3
}

/** Accepts bearers. The form of one decides who examines it, and nobody else does. */
export function bearer(settings: BearerSettings, deps: OidcDependencies): Authenticator {
  const refuse = (): Promise<Identity> => Promise.reject(notAccepted('the token is not accepted'))
  const local = settings.localTokenSha256 === undefined ? refuse : localToken(settings.localTokenSha256)
  const api = settings.apiToken === undefined ? refuse : apiToken(settings.apiToken, deps.accounts)
  const service = settings.jwtSecret === undefined ? refuse : serviceTokens(settings.jwtSecret, deps)
  const issued = oidcTokens(settings.issuers, deps)
  const signed = (jws: Jws): Promise<Identity> => (jws.alg === SERVICE_ALGORITHM ? service : issued)(jws)
  return {
    async authenticate(headers) {
      const header = headers.get('authorization')
      if (header === null) return undefined
      const token = BEARER.exec(header)?.[1]
      if (token === undefined) throw notAccepted('the token is not accepted')
      if (token.length > MAX_TOKEN_BYTES) throw notAccepted('the token is too long')
      if (isLocalToken(token)) return local(token)
      return isJwtForm(token) ? signed(readJws(token)) : api(token)
    },
  }
}
