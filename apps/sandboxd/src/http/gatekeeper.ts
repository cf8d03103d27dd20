import { createHash, timingSafeEqual } from 'node:crypto'
import { sandboxOfSession, verifyInternalToken } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { BEARER, type Caller } from '../caller.ts'
import { ReplayGuard } from './replay-guard.ts'
import { readUpgrade } from './upgrade.ts'

/** What a request must show. */
export type Credential =
  /** Nothing: whoever reaches the address is let in. */
  | { readonly kind: 'none' }
  /** A secret that both sides know. */
  | { readonly kind: 'secret'; readonly secret: string }
  /** A token that control signed for this request to this sandbox. */
  | { readonly kind: 'token'; readonly publicKey: CryptoKey; readonly sandbox: string }

/** Who may talk to this server at all. */
export interface GateSettings {
  readonly credential: Credential
  readonly origins: readonly string[]
  /** Exact Host headers that are answered, lower case. */
  readonly hosts: ReadonlySet<string>
  /** Milliseconds since the epoch: tokens are signed elsewhere. */
  readonly wallClock: () => number
}

/** Checks a credential; throws `unauthorized`. */
type Check = (request: Request, url: URL) => Promise<Caller>

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

function bearerOf(headers: Headers): string {
  const given = /^Bearer ([\x21-\x7e]+)$/i.exec(headers.get('authorization') ?? '')?.[1]
  if (given !== undefined) return given
  throw new SandwireError('unauthorized', 'Cannot authenticate: no bearer token was sent')
}

function checkSecret(secret: string): Check {
  const expected = digest(secret)
  return async ({ headers }) => {
    if (timingSafeEqual(digest(bearerOf(headers)), expected)) return BEARER
    throw new SandwireError('unauthorized', 'Cannot authenticate: the token is not accepted')
  }
}

function checkToken(publicKey: CryptoKey, sandbox: string, wallClock: () => number): Check {
  const replays = new ReplayGuard()
  return async (request, url) => {
    const { method, headers } = request
    const facts = { method, path: url.pathname + url.search, sandbox, nowMs: wallClock() }
    const claims = await verifyInternalToken(publicKey, bearerOf(headers), facts)
    const { identity, name, authority, exec, session, requestId, ...more } = claims
    const { login, grant, reauthorizeMs, starts, env, usualRole, templateRole, sessionName } = more
    if (session !== undefined && sandboxOfSession(session) !== sandbox)
      throw new SandwireError('unauthorized', 'Cannot authenticate: the token names a session elsewhere')
    // Reading twice tells nothing new; everything else would be done twice.
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
    }
  }
}

function checkOf({ credential, wallClock }: GateSettings): Check {
  switch (credential.kind) {
    case 'none':
      return async () => BEARER
    case 'secret':
      return checkSecret(credential.secret)
    case 'token':
      return checkToken(credential.publicKey, credential.sandbox, wallClock)
  }
}

/**
 * Checks Host, Origin and the credential, in this order: the first two keep web pages out even when they know
 * nothing, so they hold without a credential as well.
 */
export class Gatekeeper {
  readonly #settings: GateSettings
  readonly #check: Check

  constructor(settings: GateSettings) {
    this.#settings = settings
    this.#check = checkOf(settings)
  }

  /** Refuses requests that were meant for another host or come from a web page that is not listed. */
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

  /** Who makes the request, or why nobody that is known does. */
  async authenticate(request: Request, url: URL): Promise<Caller | SandwireError> {
    try {
      return await this.#check(request, url)
    } catch (caught) {
      return SandwireError.from(caught)
    }
  }
}
