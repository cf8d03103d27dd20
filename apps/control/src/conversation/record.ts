import type { NetworkSpec } from '@sandwire/internal-api'
import type { Published } from '../run/published.ts'
import type { RunSource, Spent } from '../run/record.ts'

/** What a conversation was created with. */
export interface ConversationRequest {
  readonly source: RunSource | { readonly kind: 'empty' }
  readonly agent: string
  readonly model?: string
  readonly permission: 'auto' | 'ask'
  readonly network: NetworkSpec
  readonly budgetUsd: number
  readonly systemPrompt?: string
}

/** The stored conversation, beside its state and entries. */
export interface ConversationRecord {
  readonly id: string
  /** Account that created it and pays for it. */
  readonly owner: string
  readonly ownerName: string
  /** How the owner's client names it; null: by its id. */
  readonly sessionId: string | null
  readonly sandbox: string
  /** The sandbox was made for it, and is destroyed with it. */
  readonly isOwnSandbox: boolean
  readonly request: ConversationRequest
  readonly createdMs: number
  readonly usedMs: number
  /** Beginning of the first message. */
  readonly title: string
  readonly cloneSession: string | null
  readonly isCloned: boolean
  /** What the gateway counted. */
  readonly spent: Spent | null
  readonly published?: Published
}
