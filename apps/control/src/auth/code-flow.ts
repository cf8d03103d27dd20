import { isLoopbackUrl, type IssuerConfig } from '@sandwire/operator-settings'
import { SandwireError } from '@sandwire/protocol'
import * as oauth from 'oauth4webapi'
import type { AccountIds } from './account-id.ts'
import { issuerBindingOf } from './browser-sign-in.ts'
import type { Scope } from './identity.ts'
import { type Fetch, IssuerClient, postToIssuer } from './issuer-client.ts'
import { CLOCK_SKEW_MS, nameOf, scopesOf } from './jwt.ts'
import { LOGIN_LIFE_MS, type LoginState } from './login-state.ts'
import { verifyIdToken } from './oidc-token.ts'

/** Why a sign-in failed. */
export type SignInProblem =
  /** The sign-in was not started by this browser, has expired, or was completed before. */
  | 'stale'
  /** The issuer redirected to a URI that names no issuer. */
  | 'redirect_uri'
  /** The user or the issuer declined. */
  | 'denied'
  /** The issuer's response is invalid. */
  | 'invalid_response'
  /** The issuer does not respond. */
  | 'unavailable'
  /** The account has no access to this server. */
  | 'not_allowed'

export class SignInError extends Error {
  readonly problem: SignInProblem

  constructor(problem: SignInProblem, cause?: unknown) {
    super(problem, { cause })
    this.problem = problem
  }
}

/** The user that an issuer authenticated. */
export interface SignedInUser {
  readonly account: string
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly issuer: string
  readonly issuerBinding: string
}

export interface CodeFlowDependencies {
  readonly accounts: Pick<AccountIds, 'of'>
  readonly fetchUrl: Fetch
  readonly nowMs: () => number
}

/** Not requested for a browser, which stores no tokens: an unused refresh token could only be stolen. */
const NOT_FOR_BROWSERS = 'offline_access'

function toSignInError(caught: unknown): SignInError {
  if (caught instanceof SignInError) return caught
  if (caught instanceof oauth.AuthorizationResponseError) return new SignInError('denied', caught)
  const isUnavailable = caught instanceof SandwireError && caught.code === 'issuer_unavailable'
  return new SignInError(isUnavailable ? 'unavailable' : 'invalid_response', caught)
}

/** Signs users in at one issuer, with an authorization code and PKCE (RFC 6749, 7636, 9207, OpenID Connect). */
export class CodeFlow {
  readonly #config: IssuerConfig
  readonly #oauthClient: oauth.Client
  readonly #deps: CodeFlowDependencies
  readonly #client: IssuerClient

  constructor(config: IssuerConfig & { readonly clientId: string }, deps: CodeFlowDependencies) {
    this.#config = config
    this.#oauthClient = { client_id: config.clientId, [oauth.clockTolerance]: CLOCK_SKEW_MS / 1000 }
    this.#deps = deps
    this.#client = new IssuerClient(config, deps.fetchUrl, deps.nowMs)
  }

  /** The issuer's URL to redirect the browser to, and the state to finish with. */
  async start(redirectUri: string, to: string): Promise<{ location: string; state: LoginState }> {
    try {
      const { authorization_endpoint: endpoint = '' } = await this.#client.findServer()
      const state: LoginState = {
        state: oauth.generateRandomState(),
        nonce: oauth.generateRandomNonce(),
        verifier: oauth.generateRandomCodeVerifier(),
        issuer: this.#config.id,
        issuerBinding: issuerBindingOf(this.#config),
        redirectUri,
        to,
        expiresMs: this.#deps.nowMs() + LOGIN_LIFE_MS,
      }
      const location = new URL(endpoint)
      const parameters = {
        ...this.#config.requestParameters,
        client_id: this.#oauthClient.client_id,
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
      throw toSignInError(caught)
    }
  }

  /** Exchanges the code of the redirect for the user; throws {@link SignInError} if anything does not match the state. */
  async finish(parameters: URLSearchParams, login: LoginState): Promise<SignedInUser> {
    // Checked first, so that a response to another browser's request is reported as stale.
    if (parameters.get('state') !== login.state) throw new SignInError('stale')
    if (login.issuerBinding !== issuerBindingOf(this.#config)) throw new SignInError('stale')
    try {
      const tokens = await this.#exchange(parameters, login)
      const claims = await verifyIdToken(tokens.id_token ?? '', {
        config: this.#config,
        client: this.#client,
        clientId: this.#oauthClient.client_id,
        nonce: login.nonce,
        nowMs: this.#deps.nowMs(),
      })
      const account = await this.#deps.accounts.of('oidc', this.#config.issuer, claims.sub)
      // A response without `scope` granted what was requested (RFC 6749, section 5.1).
      const granted = { ...claims, scope: tokens.scope ?? this.#scopes().join(' ') }
      const scopes = scopesOf(granted, this.#config.defaultScopes)
      if (!scopes.includes('connect')) throw new SignInError('not_allowed')
      return {
        account,
        name: nameOf(claims, account),
        scopes,
        issuer: this.#config.id,
        issuerBinding: login.issuerBinding,
      }
    } catch (caught) {
      throw toSignInError(caught)
    }
  }

  async #exchange(parameters: URLSearchParams, login: LoginState): Promise<oauth.TokenEndpointResponse> {
    const server = await this.#client.findServer()
    const answer = oauth.validateAuthResponse(server, this.#oauthClient, parameters, login.state)
    const resource = this.#config.requestParameters?.['resource']
    const options = {
      // Some issuers need it again (RFC 8707, section 2.2).
      ...(resource === undefined ? {} : { additionalParameters: { resource } }),
      [oauth.customFetch]: postToIssuer(this.#config, this.#deps.fetchUrl),
      // The settings allow plain HTTP for loopback addresses only.
      [oauth.allowInsecureRequests]: isLoopbackUrl(server.token_endpoint ?? ''),
    }
    const response = await oauth.authorizationCodeGrantRequest(
      server,
      this.#oauthClient,
      oauth.None(),
      answer,
      login.redirectUri,
      login.verifier,
      options,
    )
    return oauth.processAuthorizationCodeResponse(server, this.#oauthClient, response, {
      expectedNonce: login.nonce,
      requireIdToken: true,
    })
  }

  #scopes(): readonly string[] {
    const scopes = this.#config.requestScopes.filter((scope) => scope !== NOT_FOR_BROWSERS)
    return scopes.includes('openid') ? scopes : ['openid', ...scopes]
  }
}

/** A flow for every issuer with a client id, by the issuer's id. */
export function createCodeFlows(
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
