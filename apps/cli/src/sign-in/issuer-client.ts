import { ISSUER_PRESETS, type IssuerConfig, type IssuerPreset } from '@sandwire/operator-settings'
import * as oauth from 'oauth4webapi'
import { SandwireError } from '@sandwire/protocol'
import { describeNetworkError, readBounded } from '../server/response.ts'
import { UsageError } from '../errors/errors.ts'
import type { SignInIssuer } from './issuer-info.ts'
import { type EndpointSource, checkEndpoints } from './endpoint-policy.ts'
import { isSecureUrl } from '../server/address.ts'
import { printable } from '../text/printable.ts'

/** Timeout of requests to an issuer. */
const TIMEOUT_MS = 15_000
/** Larger than any metadata document or token response. */
const MAX_RESPONSE_BYTES = 512 * 1024

interface FetchInit {
  readonly method?: string
  readonly headers?: Record<string, string> | Headers
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
}

/**
 * Requests to an issuer: secure addresses only, no redirects, limited time and response size. Throws
 * `issuer_unavailable` when it cannot be reached.
 */
export async function issuerFetch(url: string, init: FetchInit = {}): Promise<Response> {
  if (!isSecureUrl(url))
    throw new SandwireError('no_issuer', 'Cannot use the issuer: its address is not https')
  const timeout = AbortSignal.timeout(TIMEOUT_MS)
  const signal = init.signal === undefined ? timeout : AbortSignal.any([timeout, init.signal])
  try {
    const response = await fetch(url, {
      method: init.method ?? 'GET',
      headers: new Headers(init.headers),
      redirect: 'manual',
      signal,
      ...(init.body instanceof URLSearchParams ? { body: init.body.toString() } : {}),
    })
    const text = await readBounded(response, MAX_RESPONSE_BYTES)
    const type = response.headers.get('content-type')
    return new Response(text === '' ? null : text, {
      status: response.status,
      headers: type === null ? {} : { 'content-type': type },
    })
  } catch (error) {
    init.signal?.throwIfAborted()
    if (error instanceof SandwireError) throw error
    const what = `Cannot reach the issuer ${new URL(url).host}: ${describeNetworkError(error)}`
    throw new SandwireError('issuer_unavailable', what, { cause: error })
  }
}

/** Algorithms of ID tokens without metadata. The server that receives the token verifies its signature. */
const ID_TOKEN_ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA']

/** Endpoints of an issuer to sign in, renew and sign out. */
export interface IssuerEndpoints {
  readonly issuer: string
  readonly clientId: string
  readonly token: string
  readonly deviceAuthorization?: string | undefined
  readonly revocation?: string | undefined
}

/** Tokens from the issuer. */
export interface Tokens {
  readonly accessToken: string
  readonly idToken: string | undefined
  readonly refreshToken: string | undefined
  /** Lifetime of the access token. */
  readonly expiresInSeconds: number | undefined
}

/** Options of every request; `issuerFetch` checks that the address is secure. */
function options(signal?: AbortSignal) {
  return {
    [oauth.customFetch]: issuerFetch,
    [oauth.allowInsecureRequests]: true,
    ...(signal === undefined ? {} : { signal }),
  }
}

function serverOf({
  issuer,
  token,
  deviceAuthorization,
  revocation,
}: IssuerEndpoints): oauth.AuthorizationServer {
  return {
    issuer,
    token_endpoint: token,
    id_token_signing_alg_values_supported: ID_TOKEN_ALGORITHMS,
    ...(deviceAuthorization === undefined ? {} : { device_authorization_endpoint: deviceAuthorization }),
    ...(revocation === undefined ? {} : { revocation_endpoint: revocation }),
  }
}

function clientOf({ clientId }: IssuerEndpoints): oauth.Client {
  return { client_id: clientId }
}

/** The OAuth error code of an error response. */
export function oauthErrorOf(error: unknown): string | undefined {
  return error instanceof oauth.ResponseBodyError ? printable(error.error).slice(0, 64) : undefined
}

/** Converts an error of the OAuth library; text of the issuer other than the error code is not shown. */
export function toSandwireError(error: unknown, action: string): SandwireError | UsageError {
  if (error instanceof SandwireError || error instanceof UsageError) return error
  const code = oauthErrorOf(error)
  if (code !== undefined)
    return new SandwireError('unauthorized', `${action}: the issuer returned ${code}`, { cause: error })
  const status =
    error instanceof oauth.OperationProcessingError && error.cause instanceof Response
      ? error.cause.status
      : 0
  if (status >= 500)
    return new SandwireError('issuer_unavailable', `${action}: the issuer responded with status ${status}`, {
      cause: error,
    })
  return new SandwireError('version_unsupported', `${action}: the issuer sent an invalid response`, {
    cause: error,
  })
}

async function discover(issuer: string, signal: AbortSignal): Promise<oauth.AuthorizationServer> {
  const url = new URL(issuer)
  const request = async (algorithm: 'oidc' | 'oauth2'): Promise<oauth.AuthorizationServer> => {
    const response = await oauth.discoveryRequest(url, { ...options(signal), algorithm })
    const found = await oauth.processDiscoveryResponse(url, response)
    // Stricter than oauth4webapi, which compares normalized URLs: tokens and stored sign-ins have the exact text.
    if (found.issuer !== issuer)
      throw new SandwireError('no_issuer', 'Cannot sign in: the server names its issuer in another spelling')
    return found
  }
  try {
    return await request('oidc')
  } catch (error) {
    if (error instanceof SandwireError || signal.aborted) throw error
    // An issuer without OpenID Connect has its metadata elsewhere.
    return await request('oauth2').catch(() => {
      throw error
    })
  }
}

/** Endpoints that this release knows to differ from the metadata of an issuer. */
function knownEndpoints(issuer: string): IssuerConfig['endpoints'] {
  const presets: readonly IssuerPreset[] = Object.values(ISSUER_PRESETS)
  return presets.find((preset) => preset.issuer === issuer)?.endpoints ?? {}
}

/**
 * Finds the endpoints of an issuer in its metadata. Those that the server names are ignored: they could belong to the issuer
 * of another server.
 */
export async function findEndpoints(
  info: SignInIssuer,
  trust: Pick<EndpointSource, 'isTrusted' | 'trustHint'>,
  signal: AbortSignal,
): Promise<IssuerEndpoints> {
  const { issuer, clientId } = info
  const { token, deviceAuthorization, revocation } = knownEndpoints(issuer)
  if (token !== undefined && deviceAuthorization !== undefined)
    return { issuer, clientId, token, deviceAuthorization, revocation }
  try {
    const found = await discover(issuer, signal)
    const all = {
      token: token ?? found.token_endpoint,
      deviceAuthorization: deviceAuthorization ?? found.device_authorization_endpoint,
      revocation: revocation ?? found.revocation_endpoint,
    }
    if (Object.values(all).some((url) => url !== undefined && !isSecureUrl(url)))
      throw new SandwireError('no_issuer', 'Cannot sign in: an endpoint of the issuer is not https')
    const named = [found.token_endpoint, found.device_authorization_endpoint, found.revocation_endpoint]
    checkEndpoints(named, { kind: 'issuer', url: issuer, ...trust })
    if (all.token === undefined || all.deviceAuthorization === undefined)
      throw new SandwireError('no_issuer', 'Cannot sign in: the issuer does not support device sign-in')
    return { issuer, clientId, ...all, token: all.token }
  } catch (error) {
    throw toSandwireError(error, 'Cannot sign in')
  }
}

function readTokens(response: oauth.TokenEndpointResponse): Tokens {
  return {
    accessToken: response.access_token,
    idToken: response.id_token,
    refreshToken: response.refresh_token,
    expiresInSeconds: response.expires_in,
  }
}

/** Starts a device sign-in; the response has the code for the user. */
export async function beginDeviceSignIn(
  endpoints: IssuerEndpoints,
  { requestScopes, requestParameters }: Pick<SignInIssuer, 'requestScopes' | 'requestParameters'>,
  signal: AbortSignal,
): Promise<oauth.DeviceAuthorizationResponse> {
  const server = serverOf(endpoints)
  const client = clientOf(endpoints)
  const parameters = new URLSearchParams({ ...requestParameters, scope: requestScopes.join(' ') })
  const response = await oauth.deviceAuthorizationRequest(
    server,
    client,
    oauth.None(),
    parameters,
    options(signal),
  )
  return await oauth.processDeviceAuthorizationResponse(server, client, response)
}

/** Polls once whether the user has confirmed. */
export async function pollDeviceSignIn(
  endpoints: IssuerEndpoints,
  parameters: {
    readonly deviceCode: string
    readonly resource: string | undefined
    readonly signal: AbortSignal
  },
): Promise<Tokens> {
  const server = serverOf(endpoints)
  const client = clientOf(endpoints)
  const response = await oauth.deviceCodeGrantRequest(server, client, oauth.None(), parameters.deviceCode, {
    ...options(parameters.signal),
    ...(parameters.resource === undefined ? {} : { additionalParameters: { resource: parameters.resource } }),
  })
  return readTokens(await oauth.processDeviceCodeResponse(server, client, response))
}

/** Exchanges a refresh token for new tokens; the old one may be invalid afterwards. */
export async function refreshTokens(
  endpoints: IssuerEndpoints,
  refreshToken: string,
  resource: string | undefined,
): Promise<Tokens> {
  const server = serverOf(endpoints)
  const client = clientOf(endpoints)
  const response = await oauth.refreshTokenGrantRequest(server, client, oauth.None(), refreshToken, {
    ...options(),
    ...(resource === undefined ? {} : { additionalParameters: { resource } }),
  })
  return readTokens(await oauth.processRefreshTokenResponse(server, client, response))
}

/** Revokes a token at the issuer (RFC 7009). */
export async function revokeToken(endpoints: IssuerEndpoints, token: string): Promise<void> {
  const response = await oauth.revocationRequest(
    serverOf(endpoints),
    clientOf(endpoints),
    oauth.None(),
    token,
    options(),
  )
  await oauth.processRevocationResponse(response)
}
