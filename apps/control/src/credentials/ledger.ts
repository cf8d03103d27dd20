import type { GatewayGrant } from './grant.ts'
import type { Reservation } from './grant-store.ts'

/** A response that cannot have this many tokens is not worth its input. */
const MIN_OUTPUT_TOKENS = 256
/** Requests wait for others to release this much, rather than have their output lowered below it. */
const GOOD_OUTPUT_TOKENS = 8_192

/** What a request for a model may cost at most. */
export interface CostBound {
  readonly model: string
  /** Upper bound of the input. */
  readonly inputTokens: number
  readonly inputMicroUsd: number
  /** Output that the request asks for. */
  readonly outputTokens: number
  /** Price of an output token. */
  readonly outputMicroUsd: number
}

/** What a run has spent, and what its requests in progress reserve. */
export interface Account {
  readonly spentMicroUsd: number
  readonly spentTokens: number
  readonly reservations: readonly Reservation[]
}

export type LedgerDecision =
  /** `outputTokens` is the most that fits the limits of the grant. */
  | {
      readonly kind: 'reserved'
      readonly outputTokens: number
      readonly costMicroUsd: number
      readonly tokens: number
    }
  /** The rest is reserved by requests in progress, which may release some of it. */
  | { readonly kind: 'wait' }
  | { readonly kind: 'exhausted'; readonly reason: string }

const total = (values: readonly number[]): number => values.reduce((sum, each) => sum + each, 0)

function formatUsd(microUsd: number): string {
  return `$${(microUsd / 1_000_000).toFixed(2)}`
}

/** The output that a cost and a number of tokens leave to a request. */
function affordableTokens(bound: CostBound, restMicroUsd: number, restTokens: number): number {
  const byCost =
    bound.outputMicroUsd === 0
      ? restMicroUsd >= bound.inputMicroUsd
        ? Number.POSITIVE_INFINITY
        : 0
      : Math.floor((restMicroUsd - bound.inputMicroUsd) / bound.outputMicroUsd)
  return Math.min(byCost, restTokens - bound.inputTokens)
}

/**
 * Decides whether a request fits the budget, with what other requests reserve counted as spent. Output is lowered to what
 * the rest affords, so that the last request of a run still gets a response.
 */
export function decide(
  { budgetMicroUsd, maxTokens = Number.POSITIVE_INFINITY, maxOutputTokens }: GatewayGrant,
  { spentMicroUsd, spentTokens, reservations }: Account,
  bound: CostBound,
  nowMs: number,
): LedgerDecision {
  const live = reservations.filter(({ expiresMs }) => expiresMs > nowMs)
  const asked = Math.min(bound.outputTokens, maxOutputTokens)
  const needed = Math.min(asked, MIN_OUTPUT_TOKENS)
  const lost = reservations.filter(({ expiresMs }) => expiresMs <= nowMs)
  const costSpent = spentMicroUsd + total(lost.map(({ costMicroUsd }) => costMicroUsd))
  const tokensSpent = spentTokens + total(lost.map(({ tokens }) => tokens))
  const affordable = affordableTokens(
    bound,
    budgetMicroUsd - costSpent - total(live.map(({ costMicroUsd }) => costMicroUsd)),
    maxTokens - tokensSpent - total(live.map(({ tokens }) => tokens)),
  )
  const rest = affordableTokens(bound, budgetMicroUsd - costSpent, maxTokens - tokensSpent)
  if (live.length > 0 && affordable < Math.min(asked, GOOD_OUTPUT_TOKENS, rest) && rest >= needed)
    return { kind: 'wait' }
  if (affordable >= needed) {
    const outputTokens = Math.min(asked, affordable)
    return {
      kind: 'reserved',
      outputTokens,
      costMicroUsd: bound.inputMicroUsd + Math.ceil(outputTokens * bound.outputMicroUsd),
      tokens: bound.inputTokens + outputTokens,
    }
  }
  const isTokens = maxTokens - tokensSpent - bound.inputTokens < needed
  return {
    kind: 'exhausted',
    reason: isTokens
      ? `The run has reached its limit of ${maxTokens} tokens`
      : `The run has reached its budget: ${formatUsd(costSpent)} of ${formatUsd(budgetMicroUsd)} is spent, and the next request may cost more than the rest`,
  }
}
