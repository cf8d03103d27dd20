import { z } from '@hono/zod-openapi'
import { MAX_MESSAGE_CHARS } from '../conversation/frames.ts'
import { refSchema, repositorySchema } from '../run/repository.ts'
import { publishedView } from './publish-schemas.ts'
import { network, numberText, spent } from './schemas.ts'

/** How a client names a conversation. */
export const SESSION_ID = /^[A-Za-z0-9_.:-]{1,128}$/

const modelName = z.string().regex(/^[A-Za-z0-9._:/@[\]-]{1,128}$/, 'expected the name of a model')

/** Body of `POST /api/conversations`. */
export const createConversationBody = z
  .strictObject({
    repo: repositorySchema
      .optional()
      .openapi({ description: 'Repository that is cloned into a new sandbox.' }),
    ref: refSchema.optional().openapi({ description: 'Branch, tag or commit; default: the default branch.' }),
    sandbox: z.string().optional().openapi({
      description: 'Id or name of a sandbox with the files. Without it and `repo`: a new, empty sandbox.',
    }),
    sessionId: z
      .string()
      .regex(SESSION_ID, 'expected letters, digits and _.:- (max 128)')
      .optional()
      .openapi({
        description:
          'Your own name for it, as in `/ws/v2?sessionId=`. A known one returns that conversation.',
      }),
    agent: z
      .string()
      .max(32)
      .optional()
      .openapi({ description: 'One of `GET /api/agents`; default: `claude`.' }),
    model: modelName.optional(),
    permission: z.enum(['auto', 'ask']).optional().openapi({
      description:
        '`ask` (default): tools that change something ask first. `auto`: tools run without asking.',
    }),
    network: network
      .optional()
      .openapi({ description: 'Of a new sandbox. Default: none but the credential gateway.' }),
    budgetUsd: z.number().positive().max(100_000).optional().openapi({
      description: 'Default and maximum are those of the server.',
    }),
    systemPrompt: z.string().max(MAX_MESSAGE_CHARS).optional(),
  })
  .openapi('CreateConversation')

export const conversationParams = z.object({
  conversation: z.string().openapi({ param: { name: 'conversation', in: 'path' } }),
})

export const listConversationsQuery = z.strictObject({
  limit: numberText.optional().openapi({ description: 'At most 100, the default.' }),
  before: z
    .string()
    .max(64)
    .optional()
    .openapi({ description: 'Conversations that were created before this one.' }),
})
export const entriesQuery = z.strictObject({
  after: numberText.optional().openapi({ description: 'Number of the last entry that you have.' }),
  limit: numberText.optional().openapi({ description: 'At most 1,000, the default; about 1 MiB.' }),
})

export const conversationMessageBody = z
  .strictObject({
    text: z.string().min(1).max(MAX_MESSAGE_CHARS),
    id: z
      .string()
      .regex(SESSION_ID, 'expected letters, digits and _.:- (max 128)')
      .optional()
      .openapi({ description: 'Repeating the request with it stores nothing a second time.' }),
  })
  .openapi('ConversationMessage')

const timeMs = z.int().openapi({ description: 'Milliseconds since 1970.' })

export const conversationView = z
  .object({
    id: z.string(),
    sessionId: z.string().nullable(),
    sandbox: z.string(),
    state: z.enum(['new', 'idle', 'starting', 'working', 'awaiting', 'restoring']),
    title: z.string().openapi({ description: 'Beginning of the first message.' }),
    repo: z.string().nullable(),
    ref: z.string().nullable(),
    agent: z.string(),
    agentSessionId: z.string().nullable().openapi({
      description: "The agent's own name for it, once it has begun, to open it in a terminal.",
    }),
    model: z.string().nullable(),
    permission: z.enum(['auto', 'ask']),
    budgetUsd: z.number(),
    createdMs: timeMs,
    usedMs: timeMs,
    lastSeq: z.int().openapi({ description: 'Number of the last entry.' }),
    queued: z.int().openapi({ description: 'Messages that wait for the agent.' }),
    requests: z.array(z.string()).readonly().openapi({ description: 'Requests that wait for an answer.' }),
    usage: spent,
    published: publishedView.nullable().openapi({ description: 'Where its changes were published last.' }),
  })
  .openapi('Conversation')
export const conversationList = z
  .object({ conversations: z.array(conversationView) })
  .openapi('Conversations')

export const messageStored = z
  .object({
    id: z.string(),
    seq: z.int().nullable().openapi({ description: 'Null while it waits for the end of the turn.' }),
  })
  .openapi('ConversationMessageStored')

export const entryRange = z
  .object({
    entries: z.array(z.object({ seq: z.int(), atMs: timeMs, frame: z.looseObject({ type: z.string() }) })),
    lastSeq: z.int(),
  })
  .openapi('ConversationEntries')

export const deadLetterList = z
  .object({ deadLetters: z.array(z.object({ key: z.string(), attempts: z.int() })) })
  .openapi('ConversationDeadLetters')
export const replayed = z.object({ replayed: z.int() }).openapi('ConversationDeadLettersReplayed')
