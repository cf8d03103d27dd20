import { sandboxIdOf } from '@sandwire/internal-api'
import type { Dialect } from '@sandwire/protocol'
import { isSessionToken, SESSION_KINDS, type SessionKind, type SessionTokens } from '../auth/session-token.ts'
import { noSuchSession } from './not-found.ts'

/** Headers of sandboxd's 101 response with the session of the connection. */
export const SESSION_HEADER = 'sandwire-session'
export const MODE_HEADER = 'sandwire-mode'
/** Header with the session token for the client. */
const TOKEN_HEADER = 'sandwire-session-token'

/** Session tokens, which clients can use in place of session ids. */
export class SessionNames {
  readonly #tokens: SessionTokens | undefined
  readonly #nowMs: () => number

  constructor(tokens: SessionTokens | undefined, nowMs: () => number) {
    this.#tokens = tokens
    this.#nowMs = nowMs
  }

  /** The session id for an id or a token. Expired tokens, and those of other users and kinds, are `session_not_found`. */
  async resolve(text: string, user: string, kinds?: readonly SessionKind[]): Promise<string> {
    if (!isSessionToken(text)) return text
    const session = await this.#tokens?.read(text, user, this.#nowMs(), kinds)
    if (session === undefined) throw noSuchSession()
    return session
  }

  /** A new token of a session, as a field of a response. */
  async tokenOf(
    { id, mode }: { readonly id: string; readonly mode: SessionKind },
    user: string,
  ): Promise<{ readonly token?: string }> {
    const binding = { session: id, kind: mode, user }
    const token = await this.#tokens?.mint(binding, this.#nowMs())
    return token === undefined ? {} : { token }
  }

  /** The headers of a 101 response for the client. The sandbox's headers are read, but not passed on. */
  async headersOf(
    upstream: Headers,
    sandbox: string,
    { identity, dialect }: { readonly identity: string; readonly dialect: Dialect },
  ): Promise<Headers> {
    const headers = new Headers(upstream)
    const session = upstream.get(SESSION_HEADER) ?? ''
    const kind = SESSION_KINDS.find((each) => each === upstream.get(MODE_HEADER))
    for (const name of [SESSION_HEADER, MODE_HEADER, TOKEN_HEADER]) headers.delete(name)
    // Only v1 clients can join a session.
    if (dialect === 'plain') return headers
    // A sandbox may name its own sessions only.
    if (kind === undefined || kind === 'claude' || sandboxIdOf(session) !== sandbox) return headers
    const { token } = await this.tokenOf({ id: session, mode: kind }, identity)
    if (token !== undefined) headers.set(TOKEN_HEADER, token)
    return headers
  }
}
