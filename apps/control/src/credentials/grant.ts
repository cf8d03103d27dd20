import { z } from 'zod'

/** Micro US dollars: amounts are integers, so that sums are exact. */
const microUsd = z.int().min(0)

const gitSchema = z.strictObject({
  /** The one repository: `https://HOST/PATH`, without credentials. */
  repository: z.string(),
  /** `none`: read-only. `agent`: pushes to branches whose name begins with `agent/`. */
  push: z.enum(['none', 'agent']),
  /** GitHub App installation whose token is used; absent: the token configured for the host, or none. */
  installationId: z.int().min(1).exactOptional(),
})

export const grantSchema = z.strictObject({
  run: z.string(),
  /** The only sandbox from which the token is accepted. */
  sandbox: z.string(),
  /** The session that uses it, and with which it ends; absent: a run or conversation, which ends it. */
  session: z.strictObject({ id: z.string(), account: z.string() }).exactOptional(),
  /** The grant ends by itself then. */
  expiresMs: z.number(),
  /** Id of the model provider, such as `anthropic`. */
  provider: z.string(),
  /** Allowed models, each exact or a prefix followed by `*`; empty: every model of the provider. */
  models: z.array(z.string()),
  /** What the run may cost. */
  budgetMicroUsd: microUsd,
  /** Largest output of one request, in tokens; larger values in requests are lowered. */
  maxOutputTokens: z.int().min(1),
  /** All tokens of the run; absent: limited by the budget alone. */
  maxTokens: z.int().min(1).exactOptional(),
  git: gitSchema.exactOptional(),
  /** Hosts of the operator's header rules that the run may use. */
  hosts: z.array(z.string()),
})

/** What a run may request of the credential gateway. */
export type GatewayGrant = Readonly<z.infer<typeof grantSchema>>

/** Tokens of one response or of a whole run. */
export interface TokenUsage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
}

export const NO_TOKENS: TokenUsage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
}

/** What a run has used so far. */
export interface GatewayUsage extends TokenUsage {
  readonly requests: number
  readonly costMicroUsd: number
  /** Reserved for requests that are in progress. */
  readonly reservedMicroUsd: number
  readonly budgetMicroUsd: number
  /** True once a request was refused because of the budget or the token limit. */
  readonly isExhausted: boolean
  /** Usage by model. */
  readonly models: Readonly<Record<string, TokenUsage & { readonly costMicroUsd: number }>>
}

/** Where a request came from: the slot that workerd injected, or the container whose request was intercepted. */
export type GatewaySource = { readonly slot: number } | { readonly sandbox: string }
