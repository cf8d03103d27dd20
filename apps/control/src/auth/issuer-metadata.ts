import type { IssuerConfig } from '@sandwire/operator-settings'
import { SandwireError } from '@sandwire/protocol'
import type { AuthorizationServer } from 'oauth4webapi'
import { discover, endpointOf } from './discovery.ts'
import { AWAY_MS, type Fetch } from './issuer-fetch.ts'

/** Metadata is asked for again after this long. */
const LIFE_MS = 60 * 60_000

/** Where one issuer signs people in: from its metadata, kept for a while, unless the operator says otherwise. */
export class IssuerMetadata {
  readonly #config: IssuerConfig
  readonly #fetch: Fetch
  readonly #nowMs: () => number
  #known: { readonly server: AuthorizationServer; readonly untilMs: number } | undefined
  #away: { readonly error: SandwireError; readonly untilMs: number } | undefined

  constructor(config: IssuerConfig, fetchUrl: Fetch, nowMs: () => number) {
    this.#config = config
    this.#fetch = fetchUrl
    this.#nowMs = nowMs
  }

  /** Throws `issuer_unavailable` when it cannot be found out; then nobody asks again for a moment. */
  async find(): Promise<AuthorizationServer> {
    const nowMs = this.#nowMs()
    if (this.#known !== undefined && this.#known.untilMs > nowMs) return this.#known.server
    if (this.#away !== undefined && this.#away.untilMs > nowMs) throw this.#away.error
    try {
      const server = await this.#ask()
      this.#known = { server, untilMs: this.#nowMs() + LIFE_MS }
      return server
    } catch (caught) {
      const error = SandwireError.from(caught)
      this.#away = { error, untilMs: this.#nowMs() + AWAY_MS }
      throw error
    }
  }

  async #ask(): Promise<AuthorizationServer> {
    const { issuer, endpoints, algorithms } = this.#config
    const metadata = await discover(this.#config, this.#fetch)
    return {
      issuer,
      authorization_endpoint:
        endpoints.authorization ?? endpointOf(metadata, 'authorization_endpoint', this.#config),
      token_endpoint: endpoints.token ?? endpointOf(metadata, 'token_endpoint', this.#config),
      authorization_response_iss_parameter_supported:
        metadata.get('authorization_response_iss_parameter_supported') === true,
      // Ours, not the issuer's: what it could sign with is no reason to accept it.
      id_token_signing_alg_values_supported: [...algorithms],
    }
  }
}
