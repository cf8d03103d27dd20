import { withTimeout } from '@sandwire/async'
import { isLoopbackUrl, isSecureUrl, type IssuerConfig } from '@sandwire/operator-settings'
import { SandwireError } from '@sandwire/protocol'
import { createRemoteJWKSet, customFetch, type CryptoKey, errors, type JWSHeaderParameters } from 'jose'
import * as oauth from 'oauth4webapi'
import { withDeadline } from '../http/deadline.ts'
import { readBounded } from '../http/read-bounded.ts'
import { unauthorized } from './identity.ts'

/** Deadline of one request to an issuer, including its body. */
const REQUEST_TIMEOUT_MS = 5_000
/** Ten times the metadata and keys of the largest issuers. */
const MAX_RESPONSE_BYTES = 256 * 1024
/** Deadline of a code exchange, which the user waits for. */
const EXCHANGE_TIMEOUT_MS = 10_000
/** A few tokens of a few KiB each. */
const MAX_EXCHANGE_BYTES = 64 * 1024

/** No new request is made for this long after one failed. */
export const RETRY_PAUSE_MS = 5_000
/** Keys are fetched again after this long, so that a withdrawn key is not accepted any more. */
export const KEYS_LIFE_MS = 10 * 60_000
/** An unknown key triggers a fetch, but no more often than this. */
export const KEYS_COOLDOWN_MS = 10_000
const METADATA_LIFE_MS = 60 * 60_000
/** A response this young is shared by all callers that waited to fetch the same. */
const SHARED_RESPONSE_MS = 1_000
/** Concurrent requests to one issuer; unauthenticated clients can cause them. */
const MAX_CONCURRENT = 4
/** Longest duration of one lookup, which may take two requests. */
const LOOKUP_MS = 2 * REQUEST_TIMEOUT_MS + 1_000
/** Longest wait for a key. jose may be waiting for a request that was canceled and never settles. */
const FIND_KEY_MS = 3 * REQUEST_TIMEOUT_MS

/** Fetches from issuers. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

function unavailable(name: string, problem: string): SandwireError {
  return new SandwireError('issuer_unavailable', `Cannot check the token: ${name} ${problem}`, {
    retryAfterMs: RETRY_PAUSE_MS,
  })
}

interface FetchBounds {
  readonly timeoutMs: number
  readonly maxBytes: number
}

/** Sends a request within the bounds, without following redirects. Throws `issuer_unavailable` on any failure. */
async function fetchFromIssuer(
  { name }: IssuerConfig,
  send: (signal: AbortSignal) => Promise<Response>,
  { timeoutMs, maxBytes }: FetchBounds,
): Promise<Response> {
  const exchange = async (signal: AbortSignal): Promise<Response> => {
    const response = await send(signal)
    const text = await readBounded(response, maxBytes, signal)
    if (text === undefined) throw new Error('The response is too large or incomplete')
    const type = response.headers.get('content-type') ?? ''
    return new Response(text, { status: response.status, headers: { 'content-type': type } })
  }
  try {
    return await withDeadline({ ms: timeoutMs, late: () => new Error('Timed out') }, exchange)
  } catch {
    throw unavailable(name, 'does not respond')
  }
}

function getFromIssuer(config: IssuerConfig, fetchUrl: Fetch, url: string): Promise<Response> {
  const headers = { accept: 'application/json' }
  return fetchFromIssuer(
    config,
    (signal) => fetchUrl(url, { method: 'GET', headers, redirect: 'manual', signal }),
    { timeoutMs: REQUEST_TIMEOUT_MS, maxBytes: MAX_RESPONSE_BYTES },
  )
}

type Post = (url: string, options: oauth.CustomFetchOptions<'POST', URLSearchParams>) => Promise<Response>

/** Posts a form to the token endpoint; never retried. */
export function postToIssuer(config: IssuerConfig, fetchUrl: Fetch): Post {
  return (url, { method, headers, body }) =>
    fetchFromIssuer(
      config,
      (signal) => fetchUrl(url, { method, headers, body, redirect: 'manual', signal }),
      { timeoutMs: EXCHANGE_TIMEOUT_MS, maxBytes: MAX_EXCHANGE_BYTES },
    )
}

/** Fetches the metadata: OpenID Connect Discovery first, then RFC 8414. */
async function discover(config: IssuerConfig, fetchUrl: Fetch): Promise<oauth.AuthorizationServer> {
  const { name, issuer } = config
  const url = new URL(issuer)
  for (const algorithm of ['oidc', 'oauth2'] as const) {
    const response = await oauth.discoveryRequest(url, {
      algorithm,
      [oauth.customFetch]: async (address) => {
        const { status, body } = await getFromIssuer(config, fetchUrl, address)
        // Some issuers send another content type.
        return new Response(body, { status, headers: { 'content-type': 'application/json' } })
      },
      // The settings allow plain HTTP for loopback addresses only.
      [oauth.allowInsecureRequests]: isLoopbackUrl(issuer),
    })
    if (response.status !== 200) continue
    const server = await oauth.processDiscoveryResponse(url, response).catch(() => undefined)
    // Stricter than oauth4webapi, which compares normalized URLs. Otherwise one issuer could supply another's keys.
    if (server?.issuer !== issuer) throw unavailable(name, 'has metadata of another issuer')
    return server
  }
  throw unavailable(name, 'has no metadata')
}

/** How often a caller that waits for a slot checks again. */
const SLOT_POLL_MS = 20

/** Limits concurrent work. A canceled request runs no `finally`, so a slot that is not released expires. */
class ConcurrencyLimit {
  readonly #max: number
  readonly #expiryMs: number
  readonly #nowMs: () => number
  readonly #slots = new Map<symbol, number>()

  constructor(max: number, expiryMs: number, nowMs: () => number) {
    this.#max = max
    this.#expiryMs = expiryMs
    this.#nowMs = nowMs
  }

  /** Runs the work once a slot is free; throws `timedOut()` if none becomes free within the expiry of a slot. */
  async run<T>(work: () => Promise<T>, timedOut: () => Error): Promise<T> {
    const startedMs = this.#nowMs()
    while (!this.#isFree()) {
      if (this.#nowMs() - startedMs >= this.#expiryMs) throw timedOut()
      // Polls with its own timer: in workerd another request cannot resolve this request's promise.
      await new Promise((resolve) => setTimeout(resolve, SLOT_POLL_MS))
    }
    const slot = Symbol('slot')
    this.#slots.set(slot, this.#nowMs())
    try {
      return await work()
    } finally {
      this.#slots.delete(slot)
    }
  }

  #isFree(): boolean {
    const nowMs = this.#nowMs()
    for (const [slot, takenMs] of this.#slots) if (nowMs - takenMs >= this.#expiryMs) this.#slots.delete(slot)
    return this.#slots.size < this.#max
  }
}

interface Cached<T> {
  readonly value: T
  readonly atMs: number
}

/** Fetches and caches the metadata and the keys of one issuer. */
export class IssuerClient {
  readonly #config: IssuerConfig
  readonly #fetch: Fetch
  readonly #nowMs: () => number
  readonly #limit: ConcurrencyLimit
  #keySet: { readonly url: string; readonly find: ReturnType<typeof createRemoteJWKSet> } | undefined
  #metadata: Cached<oauth.AuthorizationServer> | undefined
  #keysResponse: Cached<string> | undefined
  #failure: { readonly error: SandwireError; readonly untilMs: number } | undefined

  constructor(config: IssuerConfig, fetchUrl: Fetch, nowMs: () => number) {
    this.#config = config
    this.#fetch = fetchUrl
    this.#nowMs = nowMs
    this.#limit = new ConcurrencyLimit(MAX_CONCURRENT, LOOKUP_MS, nowMs)
  }

  /** The endpoints for signing in, from the settings or the metadata; throws `issuer_unavailable`. */
  async findServer(): Promise<oauth.AuthorizationServer> {
    const { issuer, endpoints, algorithms } = this.#config
    const metadata = await this.#findMetadata()
    return {
      issuer,
      authorization_endpoint:
        endpoints.authorization ??
        this.#checkEndpoint(metadata.authorization_endpoint, 'authorization_endpoint'),
      token_endpoint: endpoints.token ?? this.#checkEndpoint(metadata.token_endpoint, 'token_endpoint'),
      authorization_response_iss_parameter_supported:
        metadata.authorization_response_iss_parameter_supported === true,
      // From our settings: what the issuer could sign with must not widen what is accepted.
      id_token_signing_alg_values_supported: [...algorithms],
    }
  }

  /**
   * The key for a token with this header; throws `unauthorized` if the issuer has no such key. Keys fetched before the token
   * arrived cannot decide that, because its key may be newer: then throws `issuer_unavailable` until the next fetch is allowed.
   */
  async findKey(header: JWSHeaderParameters): Promise<CryptoKey> {
    // Without a key id the key would be a guess.
    if (typeof header.kid !== 'string' || header.kid === '') throw unauthorized('the token names no key')
    const sinceMs = this.#nowMs()
    try {
      return await withTimeout(this.#findKey(header), FIND_KEY_MS, () =>
        this.#unavailable('does not respond'),
      )
    } catch (caught) {
      const isUnknown = caught instanceof errors.JWKSNoMatchingKey
      const fetchedMs = this.#keysResponse?.atMs ?? sinceMs
      if (isUnknown && fetchedMs < sinceMs)
        throw new SandwireError('issuer_unavailable', 'Cannot check the token: its key is not known yet', {
          retryAfterMs: Math.max(1_000, fetchedMs + KEYS_COOLDOWN_MS - sinceMs),
        })
      if (isUnknown || caught instanceof errors.JWKSMultipleMatchingKeys)
        throw unauthorized('the token is signed with an unknown key')
      if (caught instanceof SandwireError) throw caught
      throw this.#unavailable('has invalid keys')
    }
  }

  async #findKey(header: JWSHeaderParameters): Promise<CryptoKey> {
    const url =
      this.#config.endpoints.jwks ?? this.#checkEndpoint((await this.#findMetadata()).jwks_uri, 'jwks_uri')
    if (this.#keySet?.url !== url) {
      const find = createRemoteJWKSet(new URL(url), {
        cacheMaxAge: KEYS_LIFE_MS,
        cooldownDuration: KEYS_COOLDOWN_MS,
        [customFetch]: async (address) => new Response(await this.#fetchKeys(address)),
      })
      this.#keySet = { url, find }
      this.#keysResponse = undefined
    }
    return this.#keySet.find(header)
  }

  async #findMetadata(): Promise<oauth.AuthorizationServer> {
    const cached = (): oauth.AuthorizationServer | undefined => this.#fresh(this.#metadata, METADATA_LIFE_MS)
    return (
      cached() ??
      this.#lookUp(cached, async () => {
        const value = await discover(this.#config, this.#fetch)
        this.#metadata = { value, atMs: this.#nowMs() }
        return value
      })
    )
  }

  async #fetchKeys(url: string): Promise<string> {
    return this.#lookUp(
      () => this.#fresh(this.#keysResponse, SHARED_RESPONSE_MS),
      async () => {
        const response = await getFromIssuer(this.#config, this.#fetch, url)
        if (response.status !== 200) throw this.#unavailable('does not serve its keys')
        const value = await response.text()
        this.#keysResponse = { value, atMs: this.#nowMs() }
        return value
      },
    )
  }

  #fresh<T>(cached: Cached<T> | undefined, lifeMs: number): T | undefined {
    return cached !== undefined && this.#nowMs() - cached.atMs < lifeMs ? cached.value : undefined
  }

  /** Fetches within the concurrency limit unless the value is cached by then; after a failure, fails at once for a while. */
  async #lookUp<T>(cached: () => T | undefined, fetchValue: () => Promise<T>): Promise<T> {
    const request = async (): Promise<T> => {
      if (this.#failure !== undefined && this.#failure.untilMs > this.#nowMs()) throw this.#failure.error
      const value = cached()
      if (value !== undefined) return value
      try {
        return await fetchValue()
      } catch (caught) {
        const error = SandwireError.from(caught)
        this.#failure = { error, untilMs: this.#nowMs() + RETRY_PAUSE_MS }
        throw error
      }
    }
    return this.#limit.run(request, () => this.#unavailable('does not respond'))
  }

  /** Checks a URL from the metadata: it must be secure, and loopback only if the issuer is. */
  #checkEndpoint(url: unknown, field: string): string {
    const { issuer } = this.#config
    const isAllowed =
      typeof url === 'string' && isSecureUrl(url) && (!isLoopbackUrl(url) || isLoopbackUrl(issuer))
    if (!isAllowed) throw this.#unavailable(`has no usable ${field}`)
    return url
  }

  #unavailable(problem: string): SandwireError {
    return unavailable(this.#config.name, problem)
  }
}
