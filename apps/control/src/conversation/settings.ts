import { z } from 'zod'
import { integer } from '../limits.ts'

/** Limits of conversations, and their defaults. */
export const conversationSettingsSchema = z.strictObject({
  /** Conversations of an account. */
  perAccount: integer(1, 100_000).default(1_000),
  /** Days after its last use for which a conversation is kept. */
  keepDays: integer(1, 3_650).default(90),
  /** Most that a conversation may cost, in US dollars; also the default. */
  budgetUsd: z.number().min(0.01).max(100_000).default(50),
  /** Days for which an agent's program may run without a restart. */
  agentHours: integer(1, 7 * 24).default(24),
})

export type ConversationSettings = z.infer<typeof conversationSettingsSchema>
