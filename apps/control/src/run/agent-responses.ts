import {
  END_STATUSES,
  type AgentView,
  type DiffFacts,
  type EventRange,
  type RunEvent,
  type RunResult,
} from '@sandwire/agent'
import { z } from 'zod'

/** Most pending requests that a sandbox may report. */
const MAX_APPROVALS = 64
/** Most paths in a list of a result; the diff itself has them all. */
const MAX_PATHS = 100_000

const STATES = ['preparing', 'starting', 'turn', 'awaiting', 'idle', 'ending', 'collecting', 'ended'] as const
const text = z.string()
const nullableText = z.string().nullable()
const count = z.number().min(0)

const usage = z.object({
  turns: count,
  inputTokens: count,
  outputTokens: count,
  cacheReadTokens: count,
  cacheWriteTokens: count,
  costUsd: count.nullable(),
})

const inputRequest = z.object({
  prompt: text,
  requestId: text,
  kind: z.enum(['permission', 'question', 'plan', 'message']),
  deadlineMs: z.number().nullable(),
  tool: z.object({ name: text, title: text, input: z.unknown() }).exactOptional(),
  questions: z
    .array(
      z.object({
        question: text,
        header: text,
        allowsMany: z.boolean(),
        options: z.array(z.object({ label: text, description: text })),
      }),
    )
    .exactOptional(),
})

/** An `AgentView` of sandboxd. */
export const agentViewSchema = z.object({
  run: text,
  journal: text,
  state: z.enum(STATES),
  lastSeq: z.int().min(0),
  startedMs: z.number(),
  endedMs: z.number().nullable(),
  reason: z.enum(END_STATUSES).nullable(),
  message: nullableText,
  agentSessionId: nullableText,
  model: nullableText,
  usage,
  approvals: z.array(inputRequest).max(MAX_APPROVALS),
  isTamperProof: z.boolean(),
}) satisfies z.ZodType<AgentView>

/** Events are passed on as they are; only what control acts on is checked. */
const event = z.custom<RunEvent>(
  (value) => typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string',
)

export const numberedEventSchema = z.object({ seq: z.int().min(1), atMs: z.number(), event })

export const eventRangeSchema = z.object({
  journal: text,
  state: z.enum(STATES),
  events: z.array(numberedEventSchema),
  lastSeq: z.int().min(0),
}) satisfies z.ZodType<EventRange>

const changedFile = z.object({
  path: text,
  action: z.enum(['create', 'modify', 'delete', 'rename']),
  from: text.exactOptional(),
  added: count.nullable(),
  removed: count.nullable(),
})
const paths = z.array(text).max(MAX_PATHS)

/** `DiffFacts` of sandboxd. */
export const diffFactsSchema = z.object({
  bytes: count,
  sha256: text,
  packBytes: count.nullable().default(null),
  treeHash: text,
  files: z.array(changedFile).max(MAX_PATHS),
  ignored: paths,
  submodules: paths,
  withheld: paths.default([]),
  unreadable: paths,
}) satisfies z.ZodType<DiffFacts>

/** A `RunResult` of sandboxd. */
export const runResultSchema = z.object({
  status: z.enum(END_STATUSES),
  message: nullableText,
  summary: text,
  structured: z.unknown(),
  exitCode: z.number().nullable(),
  signal: nullableText,
  base: z.object({ treeHash: text, commit: nullableText, isCommit: z.boolean() }).nullable(),
  diff: diffFactsSchema.nullable(),
  diffProblem: nullableText,
  usage,
  agentSessionId: nullableText,
  model: nullableText,
  isTamperProof: z.boolean(),
  startedMs: z.number(),
  endedMs: z.number(),
}) satisfies z.ZodType<RunResult>
