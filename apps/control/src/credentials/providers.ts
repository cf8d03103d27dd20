import {
  ANTHROPIC_PROVIDER,
  type CredentialSettings,
  type ModelPrice,
  type ModelProvider,
} from '@sandwire/operator-settings'
import type { TokenUsage } from './grant.ts'

/** Tokens of one response; part of the cache writes may be for an hour, which costs more. */
export interface MeteredTokens extends TokenUsage {
  readonly longCacheWriteTokens: number
}

const price = (input: number, output: number, cacheRead: number, cacheWrite: number): ModelPrice => ({
  input,
  output,
  cacheRead,
  cacheWrite,
})

/**
 * List prices of Anthropic's API. A model that is newer than this list has the highest price of its family, so that a budget is
 * not exceeded; `credentials.providers` can state others.
 */
const ANTHROPIC_PRICES: Readonly<Record<string, ModelPrice>> = {
  'claude-3-5-haiku*': price(0.8, 4, 0.08, 1),
  'claude-haiku-*': price(1, 5, 0.1, 1.25),
  'claude-3-5-sonnet*': price(3, 15, 0.3, 3.75),
  'claude-3-7-sonnet*': price(3, 15, 0.3, 3.75),
  'claude-sonnet-*': price(3, 15, 0.3, 3.75),
  'claude-sonnet-5*': price(2, 10, 0.2, 2.5),
  'claude-opus-*': price(15, 75, 1.5, 18.75),
  'claude-opus-4-5*': price(5, 25, 0.5, 6.25),
  'claude-opus-4-6*': price(5, 25, 0.5, 6.25),
  'claude-opus-4-7*': price(5, 25, 0.5, 6.25),
  'claude-opus-4-8*': price(5, 25, 0.5, 6.25),
  'claude-opus-5*': price(5, 25, 0.5, 6.25),
  'claude-opus-5-5*': price(4, 20, 0.2, 5),
  'claude-fable-*': price(10, 50, 1, 12.5),
  'claude-fable-5-2*': price(8, 40, 0.2, 10),
  'claude-mythos-*': price(10, 50, 1, 12.5),
  'claude-mythos-5-2*': price(8, 40, 0.2, 10),
}

/** A cache write for an hour costs twice the input. */
const LONG_CACHE_WRITE_FACTOR = 2

/** Secrets and variables of the operator, by name. */
export type ReadSecret = (name: string) => string | undefined

/** A provider with its secret. */
export interface OpenProvider extends ModelProvider {
  /** Headers that authenticate; their values never leave control except to the provider. */
  readonly authentication: Readonly<Record<string, string>>
  /** Texts that must not be in a response. */
  readonly secrets: readonly string[]
}

function openAnthropic(readSecret: ReadSecret): OpenProvider | undefined {
  const key = readSecret('ANTHROPIC_API_KEY')
  const oauth = readSecret('CLAUDE_CODE_OAUTH_TOKEN')
  const secret = key ?? oauth
  if (secret === undefined) return undefined
  return {
    id: ANTHROPIC_PROVIDER,
    api: 'anthropic',
    baseUrl: (readSecret('ANTHROPIC_BASE_URL') ?? 'https://api.anthropic.com').replace(/\/+$/, ''),
    header: key === undefined ? 'authorization' : 'x-api-key',
    secret: key === undefined ? 'CLAUDE_CODE_OAUTH_TOKEN' : 'ANTHROPIC_API_KEY',
    prices: ANTHROPIC_PRICES,
    authentication: key === undefined ? { authorization: `Bearer ${secret}` } : { 'x-api-key': secret },
    secrets: [secret],
  }
}

/** A provider and its secret; otherwise what the operator must set. */
export function openProvider(
  id: string,
  { providers }: CredentialSettings,
  readSecret: ReadSecret,
): OpenProvider | { readonly problem: string } {
  const configured = providers.find((each) => each.id === id)
  if (configured === undefined) {
    if (id !== ANTHROPIC_PROVIDER)
      return { problem: `no model provider "${id}" is configured; add it to "credentials.providers"` }
    return (
      openAnthropic(readSecret) ?? {
        problem:
          'no key of the model API is configured; set ANTHROPIC_API_KEY (or ANTHROPIC_API_KEY_FILE, or CLAUDE_CODE_OAUTH_TOKEN) and start the server again',
      }
    )
  }
  const secret = readSecret(configured.secret)
  if (secret === undefined)
    return { problem: `the key of model provider "${id}" is missing; set ${configured.secret}` }
  const { header } = configured
  return {
    ...configured,
    authentication: { [header]: header === 'authorization' ? `Bearer ${secret}` : secret },
    secrets: [secret],
  }
}

/** True when a name is listed, exactly or by a prefix followed by `*`. */
export function isListed(patterns: readonly string[], name: string): boolean {
  return patterns.some((each) => (each.endsWith('*') ? name.startsWith(each.slice(0, -1)) : each === name))
}

/** The price of a model, by the longest match; undefined: not offered. */
export function findPrice(prices: ModelProvider['prices'], model: string): ModelPrice | undefined {
  const [best] = Object.keys(prices)
    .filter((pattern) => isListed([pattern], model))
    .toSorted((left, right) => right.length - left.length)
  return best === undefined ? undefined : prices[best]
}

/** What tokens cost. A price in US dollars per million tokens is one in micro US dollars per token. */
export function costMicroUsd(
  { input, output, cacheRead, cacheWrite }: ModelPrice,
  { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, longCacheWriteTokens }: MeteredTokens,
): number {
  const shortWrites = Math.max(0, cacheWriteTokens - longCacheWriteTokens)
  return Math.ceil(
    inputTokens * input +
      outputTokens * output +
      cacheReadTokens * cacheRead +
      shortWrites * cacheWrite +
      longCacheWriteTokens * Math.max(cacheWrite, input * LONG_CACHE_WRITE_FACTOR),
  )
}
