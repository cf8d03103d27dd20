import { shellQuote } from '@sandwire/shell-quote'
import type { CommandContext } from '../commands/command.ts'
import { HintedError, UsageError } from '../errors/errors.ts'
import { type Credential, findTokenProblem, hasSameAudience, isSameClient } from './credential.ts'
import { CredentialStore } from './credential-store.ts'
import type { IssuerEndpoints } from './issuer-client.ts'
import type { SignInIssuer } from './issuer-info.ts'

const UNREADABLE = 'Cannot sign in: the issuer gave a token that the server cannot read'
const UNREADABLE_HINT =
  'the operator has to set "resource" or "bearer": "id_token" in the issuer settings of the server'
const OTHER_ISSUER = 'Cannot sign in: the issuer that the server names gave a token of another issuer'
const OTHER_ISSUER_HINT = 'do not sign in unless you know why it does that'

/** Asks the user whether a server may get a token that is valid at another server too; throws if not. */
export class ServerTrust {
  readonly #context: CommandContext
  readonly #isTrusted: boolean
  /** Origins of other servers that the user confirmed it for. */
  readonly #confirmed = new Set<string>()
  /** Hosts of pages that the user confirmed. */
  readonly #confirmedPages = new Set<string>()

  constructor(context: CommandContext, isTrusted: boolean) {
    this.#context = context
    this.#isTrusted = isTrusted
  }

  /** Before the sign-in: does the server use the issuer and client of another one? */
  async checkEndpoints(endpoints: IssuerEndpoints): Promise<void> {
    await this.#confirm(
      (stored) => isSameClient(stored, endpoints),
      (host, other) => `${host} uses the same issuer and client as ${other}, and could use your token there`,
    )
  }

  /** Before the user confirms at a page that is not the issuer's: the code may be one that the server requested for itself. */
  async checkPage(page: string, issuer: string): Promise<void> {
    const [{ host }, pageHost] = [new URL(this.#context.origin), new URL(page).host]
    if (this.#confirmedPages.has(pageHost)) return
    await this.#ask(
      `the page is at ${pageHost}, not at the issuer ${new URL(issuer).host}: ${host} could sign in as you there`,
    )
    this.#confirmedPages.add(pageHost)
  }

  /** Before the server gets the token: is it of the server's issuer, and for this server alone? */
  async checkToken(credential: Credential, { issuer }: SignInIssuer): Promise<void> {
    const problem = findTokenProblem(credential.bearer, issuer)
    if (problem === 'opaque') throw new HintedError('forbidden', UNREADABLE, UNREADABLE_HINT)
    if (problem === 'otherIssuer') throw new HintedError('forbidden', OTHER_ISSUER, OTHER_ISSUER_HINT)
    await this.#confirm(
      (stored) => hasSameAudience(stored, credential),
      (host, other) => `${other} accepts the same token, so ${host} could use it there`,
    )
  }

  async #confirm(
    matches: (stored: Credential) => boolean,
    reason: (host: string, other: string) => string,
  ): Promise<void> {
    const { env, origin } = this.#context
    const store = new CredentialStore(env)
    const isOther = (other: string): boolean => {
      const stored = other === origin || this.#confirmed.has(other) ? undefined : store.read(other)
      return stored !== undefined && matches(stored)
    }
    const other = store.origins().find(isOther)
    if (other === undefined) return
    await this.#ask(reason(new URL(origin).host, other))
    this.#confirmed.add(other)
  }

  async #ask(reason: string): Promise<void> {
    const { io, origin, server } = this.#context
    if (this.#isTrusted) return
    const { host } = new URL(origin)
    io.info(reason)
    if ((await io.confirm?.(`Do you trust ${host}?`)) !== true)
      throw new UsageError(`Not signed in to ${host}`, `sbx-stdio login ${shellQuote(server)} --trust`)
  }
}
