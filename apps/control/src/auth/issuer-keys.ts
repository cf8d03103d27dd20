import type { IssuerConfig } from '@sandwire/internal'
import { SandwireError } from '@sandwire/protocol'
import { createRemoteJWKSet, customFetch, type CryptoKey, errors, type JWSHeaderParameters } from 'jose'
import { notAccepted } from './authenticator.ts'
import { discover, endpointOf } from './discovery.ts'
import { askIssuer, type Fetch, issuerAway } from './issuer-fetch.ts'

/** Keys are asked for again after this long, so a key that the issuer withdrew is worth nothing then. */
export const KEYS_LIFE_MS = 10 * 60_000
/** A key that is not known makes us ask, but no more often than this. */
export const KEYS_COOLDOWN_MS = 30_000
/** After an issuer did not answer, nobody waits for it again for so long. */
export const AWAY_MS = 5_000
/** Metadata is asked for again after this long. */
const METADATA_LIFE_MS = 60 * 60_000
/** Questions to one issuer at a time: strangers can cause them. */
const MAX_QUESTIONS = 8

type KeySet = ReturnType<typeof createRemoteJWKSet>

/** The keys of one issuer, and of nobody else: found by its metadata, kept for a while. */
export class IssuerKeys {
  readonly #config: IssuerConfig
  readonly #fetch: Fetch
  readonly #nowMs: () => number
  #set: { readonly keys: KeySet; readonly untilMs: number } | undefined
  #away: { readonly error: SandwireError; readonly untilMs: number } | undefined
  #questions = 0

  constructor(config: IssuerConfig, fetchUrl: Fetch, nowMs: () => number) {
    this.#config = config
    this.#fetch = fetchUrl
    this.#nowMs = nowMs
  }

  /** The key with which this issuer signed a token of this header; throws `unauthorized` when it has none. */
  async find(header: JWSHeaderParameters): Promise<CryptoKey> {
    // Without a name for the key, which one fits would be a guess.
    if (typeof header.kid !== 'string') throw notAccepted('the token does not name its key')
    try {
      return await (
        await this.#keys()
      )(header)
    } catch (caught) {
      if (caught instanceof errors.JWKSNoMatchingKey || caught instanceof errors.JWKSMultipleMatchingKeys)
        throw notAccepted('the token is signed with a key that the issuer does not name')
      if (caught instanceof SandwireError) throw caught
      throw issuerAway(this.#config.name, 'has keys that cannot be read')
    }
  }

  async #keys(): Promise<KeySet> {
    if (this.#set !== undefined && this.#set.untilMs > this.#nowMs()) return this.#set.keys
    const url = this.#config.endpoints.jwks ?? (await this.#ask(() => this.#findKeys()))
    const keys = createRemoteJWKSet(new URL(url), {
      cacheMaxAge: KEYS_LIFE_MS,
      cooldownDuration: KEYS_COOLDOWN_MS,
      [customFetch]: (address) => this.#ask(() => this.#fetchKeys(address)),
    })
    this.#set = { keys, untilMs: this.#nowMs() + METADATA_LIFE_MS }
    return keys
  }

  async #findKeys(): Promise<string> {
    return endpointOf(await discover(this.#config, this.#fetch), 'jwks_uri', this.#config)
  }

  async #fetchKeys(url: string): Promise<Response> {
    const response = await askIssuer(this.#fetch, url)
    if (response?.status === 200) return response
    throw issuerAway(this.#config.name, response === undefined ? 'does not answer' : 'does not give its keys')
  }

  /** One question at a time from everybody's view; after a failure, none for a while. */
  async #ask<T>(question: () => Promise<T>): Promise<T> {
    if (this.#away !== undefined && this.#away.untilMs > this.#nowMs()) throw this.#away.error
    if (this.#questions >= MAX_QUESTIONS) throw issuerAway(this.#config.name, 'is being asked too often')
    this.#questions += 1
    try {
      const answer = await question()
      this.#away = undefined
      return answer
    } catch (caught) {
      const error = SandwireError.from(caught)
      this.#away = { error, untilMs: this.#nowMs() + AWAY_MS }
      throw error
    } finally {
      this.#questions -= 1
    }
  }
}
