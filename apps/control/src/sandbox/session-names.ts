import { sandboxIdOf } from '@sandwire/internal-api'
import type { Dialect } from '@sandwire/protocol'
import { isSessionToken, SESSION_KINDS, type SessionTokens } from '../auth/session-token.ts'
import { noSuchSession } from './missing.ts'

/** How sandboxd tells with a 101 which session a connection leads to. */
export const SESSION_HEADER = 'sandwire-session'
export const MODE_HEADER = 'sandwire-mode'
/** How a client is told a name for it. */
const TOKEN_HEADER = 'sandwire-session-token'

/** Session tokens: made for who may see a session, and taken where its id would be. */
export class SessionNames {
  readonly #tokens: SessionTokens | undefined
  readonly #provider: string
  readonly #nowMs: () => number

  constructor(tokens: SessionTokens | undefined, provider: string, nowMs: () => number) {
    this.#tokens = tokens
    this.#provider = provider
    this.#nowMs = nowMs
  }

  /** The id that is meant; a token that is not this user's, or no longer, is told apart from nothing. */
  async resolve(text: string, user: string): Promise<string> {
    if (!isSessionToken(text)) return text
    const session = await this.#tokens?.read(text, user, this.#nowMs())
    if (session === undefined) throw noSuchSession()
    return session
  }

  /** A fresh token of a session, as a field of an answer about it. */
  async tokenOf(
    { id, mode }: { readonly id: string; readonly mode: 'pipe' | 'pty' },
    user: string,
  ): Promise<{ readonly token?: string }> {
    const binding = { provider: this.#provider, session: id, kind: mode, user }
    const token = await this.#tokens?.mint(binding, this.#nowMs())
    return token === undefined ? {} : { token }
  }

  /** The headers of a 101 for the client: those of the sandbox are read, and none of them passed on. */
  async headersOf(
    told: Headers,
    sandbox: string,
    { identity, dialect }: { readonly identity: string; readonly dialect: Dialect },
  ): Promise<Headers> {
    const headers = new Headers(told)
    const session = told.get(SESSION_HEADER) ?? ''
    const kind = SESSION_KINDS.find((each) => each === told.get(MODE_HEADER))
    for (const name of [SESSION_HEADER, MODE_HEADER, TOKEN_HEADER]) headers.delete(name)
    // Only who speaks v1 can join by it.
    if (dialect === 'plain') return headers
    // A sandbox speaks for its own sessions only.
    if (kind === undefined || kind === 'chat' || sandboxIdOf(session) !== sandbox) return headers
    const { token } = await this.tokenOf({ id: session, mode: kind }, identity)
    if (token !== undefined) headers.set(TOKEN_HEADER, token)
    return headers
  }
}
