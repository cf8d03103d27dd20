import type { Config } from '../config.ts'
import { MIN_API_TOKEN_CHARS } from './api-token.ts'
import { isJwtForm } from './bearer.ts'
import { MIN_SECRET_BYTES } from './service-token.ts'

/** How our own tokens begin: of this machine's user, of guests, of browsers. */
const OTHER_TOKENS = /^sw[a-z]_/

/** Credentials of the operator's own services; absent, there are none. */
export interface Secrets {
  readonly jwtSecret?: string
  readonly apiToken?: string
}

/** Reads the secrets; one that is empty is absent. */
export function readSecrets(env: { readonly JWT_SECRET?: string; readonly API_TOKEN?: string }): Secrets {
  const { JWT_SECRET: jwtSecret = '', API_TOKEN: apiToken = '' } = env
  return { ...(jwtSecret === '' ? {} : { jwtSecret }), ...(apiToken === '' ? {} : { apiToken }) }
}

function faultOfApiToken(token: string): string | undefined {
  if (token.length < MIN_API_TOKEN_CHARS) return `API_TOKEN is shorter than ${MIN_API_TOKEN_CHARS} characters`
  if (!/^[\x21-\x7e]+$/.test(token)) return 'API_TOKEN has characters that no header can carry'
  // The form of a bearer decides who examines it, so this one would never be examined as what it is.
  if (OTHER_TOKENS.test(token) || isJwtForm(token)) return 'API_TOKEN has the form of another kind of token'
  return undefined
}

/** Why nobody may be let in at all, if that is so: a server that others reach knows who they are, or serves nobody. */
export function findIdentityFault(
  { mode, issuers }: Pick<Config, 'mode' | 'issuers'>,
  { jwtSecret, apiToken }: Secrets,
): string | undefined {
  if (jwtSecret !== undefined && new TextEncoder().encode(jwtSecret).byteLength < MIN_SECRET_BYTES)
    return `JWT_SECRET is shorter than ${MIN_SECRET_BYTES} bytes`
  const apiFault = apiToken === undefined ? undefined : faultOfApiToken(apiToken)
  if (apiFault !== undefined) return apiFault
  const hasIdentity = issuers.length > 0 || jwtSecret !== undefined || apiToken !== undefined
  return mode === 'open' && !hasIdentity ? 'no identity issuer is configured' : undefined
}
