import { withTimeout } from '@sandwire/async'
import type { IssuerConfig } from '@sandwire/operator-settings'
import { SandwireError } from '@sandwire/protocol'
import { createRemoteJWKSet, customFetch, type CryptoKey, errors, type JWSHeaderParameters } from 'jose'
import { notAccepted } from './authenticator.ts'
import { discover, endpointOf } from './discovery.ts'
import { ASK_TIMEOUT_MS, askIssuer, AWAY_MS, type Fetch, issuerAway } from './issuer-fetch.ts'
import { Turns } from './turns.ts'

/** Keys are asked for again after this long, so a key that the issuer withdrew is worth nothing then. */
export const KEYS_LIFE_MS = 10 * 60_000
/** A key that is not known makes us ask, but no more often than this. */
export const KEYS_COOLDOWN_MS = 10_000
/** Metadata is asked for again after this long. */
const METADATA_LIFE_MS = 60 * 60_000
/** An answer so young is everybody's who waited for a turn to ask the same. */
const SAME_MOMENT_MS = 1_000
/** Questions to one issuer at a time: strangers can cause them. */
const MAX_QUESTIONS = 4
/** Longest that a question can take, which may be two. */
const QUESTION_MS = 2 * ASK_TIMEOUT_MS + 1_000
/** Longest that anybody waits for a key. What jose awaits may belong to a request that was canceled, and never come. */
const FIND_MS = 3 * ASK_TIMEOUT_MS

interface KeySet {
  readonly url: string
  readonly find: ReturnType<typeof createRemoteJWKSet>
}
interface Remembered {
  readonly text: string
  readonly atMs: number
}

/** The keys of one issuer, and of nobody else: found by its metadata, kept for a while. */
export class IssuerKeys {
  readonly #config: IssuerConfig
  readonly #fetch: Fetch
  readonly #nowMs: () => number
  readonly #turns: Turns
  #set: KeySet | undefined
  #metadata: Remembered | undefined
  #answer: Remembered | undefined
  #away: { readonly error: SandwireError; readonly untilMs: number } | undefined

  constructor(config: IssuerConfig, fetchUrl: Fetch, nowMs: () => number) {
    this.#config = config
    this.#fetch = fetchUrl
    this.#nowMs = nowMs
    this.#turns = new Turns(MAX_QUESTIONS, QUESTION_MS, nowMs)
  }

  /**
   * The key with which this issuer signed a token of this header; throws `unauthorized` when it has none. What was asked before
   * this token came cannot tell: its key may be new. Then nobody knows until the issuer may be asked again.
   */
  async find(header: JWSHeaderParameters): Promise<CryptoKey> {
    // Without a name for the key, which one fits would be a guess.
    if (typeof header.kid !== 'string' || header.kid === '')
      throw notAccepted('the token does not name its key')
    const sinceMs = this.#nowMs()
    try {
      const late = (): Error => issuerAway(this.#config.name, 'does not answer')
      return await withTimeout(this.#find(header), FIND_MS, late)
    } catch (caught) {
      const isUnknown = caught instanceof errors.JWKSNoMatchingKey
      const askedMs = this.#answer?.atMs ?? sinceMs
      if (isUnknown && askedMs < sinceMs)
        throw new SandwireError('issuer_unavailable', 'Cannot check the token: its key is not known yet', {
          retryAfterMs: Math.max(1_000, askedMs + KEYS_COOLDOWN_MS - sinceMs),
        })
      if (isUnknown || caught instanceof errors.JWKSMultipleMatchingKeys)
        throw notAccepted('the token is signed with a key that the issuer does not name')
      if (caught instanceof SandwireError) throw caught
      throw issuerAway(this.#config.name, 'has keys that cannot be read')
    }
  }

  async #find(header: JWSHeaderParameters): Promise<CryptoKey> {
    const { find } = await this.#keys()
    return find(header)
  }

  async #keys(): Promise<KeySet> {
    const url = this.#config.endpoints.jwks ?? (await this.#findUrl())
    if (this.#set?.url !== url) {
      const find = createRemoteJWKSet(new URL(url), {
        cacheMaxAge: KEYS_LIFE_MS,
        cooldownDuration: KEYS_COOLDOWN_MS,
        [customFetch]: async (address) => new Response(await this.#fetchKeys(address)),
      })
      this.#set = { url, find }
      this.#answer = undefined
    }
    return this.#set
  }

  async #findUrl(): Promise<string> {
    const known = (): string | undefined => this.#young(this.#metadata, METADATA_LIFE_MS)
    return (
      known() ??
      this.#ask(known, async () => {
        const url = endpointOf(await discover(this.#config, this.#fetch), 'jwks_uri', this.#config)
        this.#metadata = { text: url, atMs: this.#nowMs() }
        return url
      })
    )
  }

  async #fetchKeys(url: string): Promise<string> {
    const known = (): string | undefined => this.#young(this.#answer, SAME_MOMENT_MS)
    return this.#ask(known, async () => {
      const response = await askIssuer(this.#fetch, url)
      if (response === undefined) throw issuerAway(this.#config.name, 'does not answer')
      if (response.status !== 200) throw issuerAway(this.#config.name, 'does not give its keys')
      const text = await response.text()
      this.#answer = { text, atMs: this.#nowMs() }
      return text
    })
  }

  #young(remembered: Remembered | undefined, lifeMs: number): string | undefined {
    return remembered !== undefined && this.#nowMs() - remembered.atMs < lifeMs ? remembered.text : undefined
  }

  /** Asks in turn, unless the answer is known by then; after a failure, nobody asks for a while. */
  async #ask(known: () => string | undefined, question: () => Promise<string>): Promise<string> {
    const late = (): Error => issuerAway(this.#config.name, 'does not answer')
    return this.#turns.take(async () => {
      if (this.#away !== undefined && this.#away.untilMs > this.#nowMs()) throw this.#away.error
      const answer = known()
      if (answer !== undefined) return answer
      try {
        return await question()
      } catch (caught) {
        const error = SandwireError.from(caught)
        this.#away = { error, untilMs: this.#nowMs() + AWAY_MS }
        throw error
      }
    }, late)
  }
}
