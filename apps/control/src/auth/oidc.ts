import type { IssuerConfig } from '@sandwire/operator-settings'
import { sha256Hex } from '../bytes.ts'
import type { AccountIds } from './account-id.ts'
import { type Identity, notAccepted } from './authenticator.ts'
import { audiencesOf, checkTimes, nameOf, scopesOf, textClaim } from './claims.ts'
import type { Fetch } from './issuer-fetch.ts'
import { IssuerKeys } from './issuer-keys.ts'
import { type Jws, type Members, readMembers, verifyJws } from './jws.ts'
import { checkKind } from './token-kind.ts'

/** Enough of a hash to name a sign-in by. */
const LOGIN_CHARS = 32

export interface OidcDependencies {
  readonly accounts: AccountIds
  readonly fetchUrl: Fetch
  readonly nowMs: () => number
}

/** Says who the token of a configured issuer was issued for. */
export type OidcTokens = (jws: Jws) => Promise<Identity>

/**
 * Names the sign-in that a token comes from, and the token itself where the issuer does not say: then nobody can tell
 * which tokens were refreshed from which, and signing out by one closes what any of them opened.
 */
async function loginOf(
  issuer: string,
  subject: string,
  claims: Members,
): Promise<Pick<Identity, 'login' | 'token'>> {
  const name = async (...of: readonly unknown[]): Promise<string> =>
    (await sha256Hex(JSON.stringify([issuer, subject, ...of]))).slice(0, LOGIN_CHARS)
  const sid = claims.get('sid')
  if (typeof sid === 'string') return { login: await name('sid', sid) }
  const jti = claims.get('jti')
  const of = typeof jti === 'string' ? ['jti', jti] : [claims.get('iat'), claims.get('exp')]
  return { login: await name('tokens'), token: await name(...of) }
}

/** Checks tokens of these issuers, each with its own keys and its own rules. */
export function oidcTokens(
  issuers: readonly IssuerConfig[],
  { accounts, fetchUrl, nowMs }: OidcDependencies,
): OidcTokens {
  const known = new Map(
    issuers.map((config) => [config.issuer, { config, keys: new IssuerKeys(config, fetchUrl, nowMs) }]),
  )
  return async (jws) => {
    const claims = readMembers(jws.payload)
    if (claims === undefined) throw notAccepted('the token is malformed')
    const issuer = textClaim(claims, 'iss') ?? ''
    const found = known.get(issuer)
    if (found === undefined) throw notAccepted('the issuer of the token is not one of ours')
    const { config, keys } = found
    // All that costs nothing comes before the signature: for that, the issuer may have to be asked.
    const times = checkTimes(claims, nowMs())
    if (!audiencesOf(claims).some((audience) => config.audiences.includes(audience)))
      throw notAccepted('the token is meant for somebody else')
    const subject = textClaim(claims, 'sub')
    if (subject === undefined) throw notAccepted('the token does not say whose it is')
    checkKind(jws, claims, config)
    const scopes = scopesOf(claims, config.defaultScopes)
    await verifyJws(jws, config.algorithms, (header) => keys.find(header))
    const account = await accounts.of('oidc', issuer, subject)
    const login = await loginOf(issuer, subject, claims)
    return { account, name: nameOf(claims, account), scopes, via: 'bearer', ...login, ...times }
  }
}
