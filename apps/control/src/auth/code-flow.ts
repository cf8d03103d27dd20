import { isLoopbackUrl, type IssuerConfig } from '@sandwire/operator-settings'
import { SandwireError } from '@sandwire/protocol'
import * as oauth from 'oauth4webapi'
import type { AccountIds } from './account-id.ts'
import type { Scope } from './authenticator.ts'
import { nameOf, SKEW_MS, scopesOf, textClaim } from './claims.ts'
import { checkIdToken } from './id-token.ts'
import type { Fetch } from './issuer-fetch.ts'
import { IssuerKeys } from './issuer-keys.ts'
import { IssuerMetadata } from './issuer-metadata.ts'
import { LOGIN_LIFE_MS, type LoginState } from './login-state.ts'
import { postToIssuer } from './post-to-issuer.ts'
import { voucherOf } from './voucher.ts'

/** Why nobody was signed in. */
export type SignInRefusal =
  /** The browser did not leave from here for this, or too long ago, or it came back before. */
  | 'stale'
  /** The person or the issuer said no. */
  | 'denied'
  /** What the issuer answered is not to be believed. */
  | 'not_believed'
  /** The issuer cannot be asked. */
  | 'away'
  /** Known to the issuer, but good for nothing here. */
  | 'not_allowed'

export class SignInRefused extends Error {
  readonly why: SignInRefusal

  constructor(why: SignInRefusal, cause?: unknown) {
    super(why, { cause })
    this.why = why
  }
}

/** Who came back from an issuer. */
export interface SignedInPerson {
  readonly account: string
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly issuer: string
  readonly voucher: string
}

export interface CodeFlowDependencies {
  readonly accounts: Pick<AccountIds, 'of'>
  readonly fetchUrl: Fetch
  readonly nowMs: () => number
}

/** Not asked for in a browser, which keeps no token: a refresh token that nobody uses can only be stolen. */
const NOT_FOR_BROWSERS = 'offline_access'

/** What went wrong, in words for a person. An error that is already one stays as it is. */
function toRefusal(caught: unknown): SignInRefused {
  if (caught instanceof SignInRefused) return caught
  if (caught instanceof oauth.AuthorizationResponseError) return new SignInRefused('denied', caught)
  const isAway = caught instanceof SandwireError && caught.code === 'issuer_unavailable'
  return new SignInRefused(isAway ? 'away' : 'not_believed', caught)
}

/** Signs people in at one issuer, with an authorization code and PKCE (RFC 6749, 7636, 9207, OpenID Connect). */
export class CodeFlow {
  readonly #config: IssuerConfig
  readonly #client: oauth.Client
  readonly #deps: CodeFlowDependencies
  readonly #metadata: IssuerMetadata
  readonly #keys: IssuerKeys

  constructor(config: IssuerConfig & { readonly clientId: string }, deps: CodeFlowDependencies) {
    this.#config = config
    this.#client = { client_id: config.clientId, [oauth.clockTolerance]: SKEW_MS / 1000 }
    this.#deps = deps
    this.#metadata = new IssuerMetadata(config, deps.fetchUrl, deps.nowMs)
    this.#keys = new IssuerKeys(config, deps.fetchUrl, deps.nowMs)
  }

  /** Where to send a browser, and what it has to come back with. */
  async start(redirectUri: string, to: string): Promise<{ location: string; state: LoginState }> {
    try {
      const { authorization_endpoint: endpoint = '' } = await this.#metadata.find()
      const state: LoginState = {
        state: oauth.generateRandomState(),
        nonce: oauth.generateRandomNonce(),
        verifier: oauth.generateRandomCodeVerifier(),
        issuer: this.#config.id,
        voucher: voucherOf(this.#config),
        redirectUri,
        to,
        expiresMs: this.#deps.nowMs() + LOGIN_LIFE_MS,
      }
      const location = new URL(endpoint)
      const parameters = {
        ...this.#config.requestParameters,
        client_id: this.#client.client_id,
        response_type: 'code',
        redirect_uri: redirectUri,
        scope: this.#scopes().join(' '),
        state: state.state,
        nonce: state.nonce,
        code_challenge: await oauth.calculatePKCECodeChallenge(state.verifier),
        code_challenge_method: 'S256',
      }
      for (const [name, value] of Object.entries(parameters)) location.searchParams.set(name, value)
      return { location: location.href, state }
    } catch (caught) {
      throw toRefusal(caught)
    }
  }

  /** Who came back with these parameters; throws {@link SignInRefused} unless all of it fits the state. */
  async finish(parameters: URLSearchParams, login: LoginState): Promise<SignedInPerson> {
    // First of all, so that an answer to another browser's question is called what it is.
    if (parameters.get('state') !== login.state) throw new SignInRefused('stale')
    if (login.voucher !== voucherOf(this.#config)) throw new SignInRefused('stale')
    try {
      const tokens = await this.#exchange(parameters, login)
      const claims = await checkIdToken(tokens.id_token ?? '', {
        config: this.#config,
        keys: this.#keys,
        clientId: this.#client.client_id,
        nonce: login.nonce,
        nowMs: this.#deps.nowMs(),
      })
      const subject = textClaim(claims, 'sub') ?? ''
      const account = await this.#deps.accounts.of('oidc', this.#config.issuer, subject)
      // An issuer that leaves it out gave what was asked for.
      const granted = new Map([...claims, ['scope', tokens.scope ?? this.#scopes().join(' ')] as const])
      const scopes = scopesOf(granted, this.#config.defaultScopes)
      if (!scopes.includes('connect')) throw new SignInRefused('not_allowed')
      return {
        account,
        name: nameOf(claims, account),
        scopes,
        issuer: this.#config.id,
        voucher: login.voucher,
      }
    } catch (caught) {
      throw toRefusal(caught)
    }
  }

  async #exchange(parameters: URLSearchParams, login: LoginState): Promise<oauth.TokenEndpointResponse> {
    const server = await this.#metadata.find()
    const answer = oauth.validateAuthResponse(server, this.#client, parameters, login.state)
    const resource = this.#config.requestParameters?.['resource']
    const options = {
      // Some issuers want to hear it again (RFC 8707, section 2.2); what the token is good for depends on it.
      ...(resource === undefined ? {} : { additionalParameters: { resource } }),
      [oauth.customFetch]: postToIssuer(this.#config, this.#deps.fetchUrl),
      // The settings allow plain HTTP to this machine only.
      [oauth.allowInsecureRequests]: isLoopbackUrl(server.token_endpoint ?? ''),
    }
    const response = await oauth.authorizationCodeGrantRequest(
      server,
      this.#client,
      oauth.None(),
      answer,
      login.redirectUri,
      login.verifier,
      options,
    )
    return oauth.processAuthorizationCodeResponse(server, this.#client, response, {
      expectedNonce: login.nonce,
      requireIdToken: true,
    })
  }

  #scopes(): readonly string[] {
    const asked = this.#config.requestScopes.filter((scope) => scope !== NOT_FOR_BROWSERS)
    return asked.includes('openid') ? asked : ['openid', ...asked]
  }
}

/** How to sign in at each issuer that has a client of ours, by the issuer's id. */
export function openCodeFlows(
  issuers: readonly IssuerConfig[],
  deps: CodeFlowDependencies,
): ReadonlyMap<string, CodeFlow> {
  return new Map(
    issuers.flatMap((config) => {
      const { clientId } = config
      return clientId === undefined ? [] : [[config.id, new CodeFlow({ ...config, clientId }, deps)] as const]
    }),
  )
}
