import { createHash, timingSafeEqual } from 'node:crypto'
import { CLOCK_SKEW_MS, type InternalClaims, sandboxIdOf, verifyInternalToken } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { BEARER, type Caller } from '../caller.ts'
import { readUpgrade } from './upgrade.ts'

/** How requests authenticate. */
export type Credential =
  /** Every request is accepted. */
  | { readonly kind: 'none' }
  /** With a shared secret. */
  | { readonly kind: 'secret'; readonly secret: string }
  /** With a token that control signed for this request to this sandbox. */
  | { readonly kind: 'token'; readonly publicKey: CryptoKey; readonly sandbox: string }

export interface RequestGuardSettings {
  readonly credential: Credential
  readonly origins: readonly string[]
  /** Accepted Host headers, in lower case. */
  readonly hosts: ReadonlySet<string>
  /** Milliseconds since the epoch, to compare with a token's times. */
  readonly wallClock: () => number
}

/** Authenticates a request; throws `unauthorized`. */
type Authenticate = (request: Request, url: URL) => Promise<Caller>

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

function bearerTokenOf(headers: Headers): string {
  const token = /^Bearer ([\x21-\x7e]+)$/i.exec(headers.get('authorization') ?? '')?.[1]
  if (token !== undefined) return token
  throw new SandwireError('unauthorized', 'Cannot authenticate: no bearer token was sent')
}

function bySecret(secret: string): Authenticate {
  const expected = digest(secret)
  return async ({ headers }) => {
    if (timingSafeEqual(digest(bearerTokenOf(headers)), expected)) return BEARER
    throw new SandwireError('unauthorized', 'Cannot authenticate: the token is not accepted')
  }
}

function byToken(publicKey: CryptoKey, sandbox: string, wallClock: () => number): Authenticate {
  const replays = new ReplayGuard()
  return async (request, url) => {
    const { method, headers } = request
    const facts = { method, path: url.pathname + url.search, sandbox, nowMs: wallClock() }
    const claims = await verifyInternalToken(publicKey, bearerTokenOf(headers), facts)
    const { identity, name, authority, exec, session, requestId, ...more } = claims
    const { login, grant, reauthorizeMs, starts, env, usualRole, templateRole, sessionName } = more
    const { agentTui } = more
    if (session !== undefined && sandboxIdOf(session) !== sandbox)
      throw new SandwireError(
        'unauthorized',
        'Cannot authenticate: the token names a session of another sandbox',
      )
    // Replaying a read discloses nothing new; replaying anything else would repeat its effect.
    if (method !== 'GET' || readUpgrade(request).isUpgrade) replays.use(claims, facts.nowMs)
    return {
      identity,
      name,
      authority,
      exec,
      session,
      requestId,
      ...(usualRole === undefined ? {} : { usualRole }),
      ...(templateRole === undefined ? {} : { templateRole }),
      ...(login === undefined ? {} : { login }),
      ...(grant === undefined ? {} : { grant }),
      ...(reauthorizeMs === undefined ? {} : { reauthorizeMs }),
      ...(starts === undefined ? {} : { starts }),
      ...(env === undefined ? {} : { env }),
      ...(sessionName === undefined ? {} : { sessionName }),
      ...(agentTui === undefined ? {} : { agentTui }),
    }
  }
}

function authenticatorOf({ credential, wallClock }: RequestGuardSettings): Authenticate {
  switch (credential.kind) {
    case 'none':
      return async () => BEARER
    case 'secret':
      return bySecret(credential.secret)
    case 'token':
      return byToken(credential.publicKey, credential.sandbox, wallClock)
  }
}

/**
 * Checks Host, Origin and the credential of requests, in this order. The first two protect against web pages, also where
 * no credential is required.
 */
export class RequestGuard {
  readonly #settings: RequestGuardSettings
  readonly #authenticate: Authenticate

  constructor(settings: RequestGuardSettings) {
    this.#settings = settings
    this.#authenticate = authenticatorOf(settings)
  }

  /** Refuses a request for another host or from a web page of an origin that is not listed. */
  checkSource(headers: Headers): SandwireError | undefined {
    const host = headers.get('host')?.toLowerCase()
    if (host === undefined || !this.#settings.hosts.has(host)) {
      return new SandwireError('host_refused', 'Cannot answer for this host')
    }
    const origin = headers.get('origin')
    if (origin !== null && !this.#settings.origins.includes(origin)) {
      return new SandwireError('origin_refused', 'Cannot serve this origin')
    }
    return undefined
  }

  /** The caller, or why the request is not authenticated. */
  async authenticate(request: Request, url: URL): Promise<Caller | SandwireError> {
    try {
      return await this.#authenticate(request, url)
    } catch (caught) {
      return SandwireError.from(caught)
    }
  }
}

/** Enough for a minute of 500 requests per second. */
const MAX_REMEMBERED = 32_768

/** Refuses a token that was used before. Remembers tokens until they have expired. */
export class ReplayGuard {
  /** When each may be forgotten, in order of use. */
  readonly #used = new Map<string, number>()
  readonly #maxRemembered: number

  constructor(maxRemembered: number = MAX_REMEMBERED) {
    this.#maxRemembered = maxRemembered
  }

  get size(): number {
    return this.#used.size
  }

  /** Throws `unauthorized` for a used token, and `rate_limited` when no memory is left for another one. */
  use(claims: InternalClaims, nowMs: number): void {
    const { requestId, issuedMs, method, path, expiresMs } = claims
    const key = new Bun.CryptoHasher('sha256')
      .update(JSON.stringify([requestId, issuedMs, method, path]))
      .digest('base64')
    const isKnown = this.#used.has(key)
    if (isKnown) throw new SandwireError('unauthorized', 'Cannot authenticate: the token was used before')
    if (this.#used.size >= this.#maxRemembered) this.#forgetExpired(nowMs)
    if (this.#used.size >= this.#maxRemembered)
      throw new SandwireError('rate_limited', 'Cannot take more requests now')
    this.#used.set(key, expiresMs + CLOCK_SKEW_MS)
  }

  #forgetExpired(nowMs: number): void {
    for (const [key, untilMs] of this.#used) if (untilMs < nowMs) this.#used.delete(key)
  }
}
