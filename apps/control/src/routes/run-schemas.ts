import { z } from '@hono/zod-openapi'
import { MAX_MESSAGE_CHARS, MAX_TASK_CHARS } from '@sandwire/agent'
import { OUTCOMES } from '../run/state.ts'
import { refSchema, repositorySchema } from '../run/repository.ts'
import { publishedView } from './publish-schemas.ts'
import { network, numberText, spent } from './schemas.ts'

const MAX_TURNS = 100_000
const MAX_BUDGET_USD = 100_000
const seconds = z.int('expected a whole number of seconds').min(1, 'expected at least 1')

const task = z
  .string()
  .min(1, 'expected a task')
  .max(MAX_TASK_CHARS / 2)

/** Body of `POST /api/runs`. */
export const createRunBody = z
  .strictObject({
    repo: repositorySchema.optional().openapi({
      description: 'Repository that is cloned into a new sandbox.',
      example: 'https://github.com/owner/name',
    }),
    ref: refSchema.optional().openapi({ description: 'Branch, tag or commit; default: the default branch.' }),
    installationId: z
      .int()
      .min(1)
      .optional()
      .openapi({ description: 'Installation of the GitHub App whose token reads the repository.' }),
    sandbox: z
      .string()
      .optional()
      .openapi({ description: 'Id or name of a sandbox with the files, instead of `repo`.' }),
    task,
    context: z
      .string()
      .max(MAX_TASK_CHARS / 2)
      .optional()
      .openapi({ description: 'Appended to the task.' }),
    agent: z
      .string()
      .max(32)
      .optional()
      .openapi({ description: 'One of `GET /api/agents`; default `claude`.' }),
    model: z
      .string()
      .regex(/^[A-Za-z0-9._:/@[\]-]{1,128}$/, 'expected the name of a model')
      .optional(),
    permission: z.enum(['auto', 'ask']).optional().openapi({
      description:
        '`auto` (default): tools run without asking. `ask`: tools that change something ask first.',
    }),
    hosts: z.array(z.string().max(253)).max(16).optional().openapi({
      description: 'Hosts for which the server adds a header to requests of the run; see its header rules.',
    }),
    interactive: z.boolean().optional().openapi({
      description: 'The agent takes further messages after each turn, until the run is aborted or idle.',
    }),
    limits: z
      .strictObject({
        wallClockSeconds: seconds.optional(),
        idleSeconds: seconds.optional(),
        approvalSeconds: seconds.optional(),
        turns: z.int().min(1).max(MAX_TURNS).optional(),
        budgetUsd: z.number().positive().max(MAX_BUDGET_USD).optional(),
      })
      .optional()
      .openapi({ description: 'Default and maximum are those of the server.' }),
    network: network.optional().openapi({ description: 'Default: no network but the credential gateway.' }),
    keep: z.boolean().optional().openapi({
      description: 'Keep the sandbox after the run. Default: false with `repo`, true with `sandbox`.',
    }),
  })
  .openapi('CreateRun')

export const runParams = z.object({
  run: z.string().openapi({ param: { name: 'run', in: 'path' } }),
})
export const approvalParams = runParams.extend({
  request: z
    .string()
    .regex(/^[A-Za-z0-9_.:-]{1,128}$/, 'expected the id of a request')
    .openapi({ param: { name: 'request', in: 'path' }, description: '`requestId` of `awaiting_input`.' }),
})

export const listRunsQuery = z.strictObject({
  limit: numberText.optional().openapi({ description: 'At most 100, the default.' }),
  before: z.string().max(64).optional().openapi({ description: 'Runs that were created before this one.' }),
})
export const eventsQuery = z.strictObject({
  after: numberText.optional().openapi({ description: 'Sequence number of the last event that you have.' }),
  limit: numberText.optional().openapi({ description: 'For JSON: at most 1,000, the default.' }),
})

export const messageBody = z
  .strictObject({
    text: z.string().min(1).max(MAX_MESSAGE_CHARS),
    id: z
      .string()
      .regex(/^[A-Za-z0-9_.:-]{1,128}$/, 'expected letters, digits and _.:- (max 128)')
      .optional()
      .openapi({ description: 'Repeating the request with it sends nothing a second time.' }),
  })
  .openapi('RunMessage')

function isAnswers(value: unknown): value is Record<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return Object.values(value).every((text) => typeof text === 'string')
}
export const approvalBody = z
  .strictObject({
    decision: z.enum(['allow', 'deny']),
    message: z.string().max(MAX_MESSAGE_CHARS).optional().openapi({ description: 'Told to the agent.' }),
    answers: z
      .custom<Record<string, string>>(isAnswers, 'expected an object of strings')
      .optional()
      .openapi({
        type: 'object',
        additionalProperties: { type: 'string' },
        description: 'Answers by question.',
      }),
    acceptsEdits: z
      .boolean()
      .optional()
      .openapi({ description: 'Also allow edits of files for the rest of the run.' }),
  })
  .openapi('RunApproval')

const timeMs = z.int().openapi({ description: 'Milliseconds since 1970.' })
const texts = z.array(z.string()).readonly()

const inputRequest = z.object({
  prompt: z.string(),
  requestId: z.string(),
  kind: z.enum(['permission', 'question', 'plan', 'message']),
  deadlineMs: timeMs.nullable(),
  tool: z.looseObject({ name: z.string(), title: z.string() }).optional(),
  questions: z.array(z.looseObject({})).readonly().optional(),
})

const result = z
  .object({
    status: z.enum(OUTCOMES),
    message: z.string().nullable(),
    summary: z.string(),
    structured: z.unknown(),
    filesChanged: texts,
    treeHash: z.string().nullable(),
    base: z.object({ treeHash: z.string(), commit: z.string().nullable(), isCommit: z.boolean() }).nullable(),
    diffBytes: z.int().nullable(),
    diffProblem: z.string().nullable(),
    ignored: texts,
    submodules: texts,
    withheld: texts,
    unreadable: texts,
    agentSessionId: z.string().nullable(),
    tamperProof: z.boolean(),
  })
  .openapi('RunResult')

export const runView = z
  .object({
    id: z.string(),
    sandbox: z.string(),
    state: z.enum(['queued', 'preparing', 'running', 'awaiting', 'stopping', 'collecting', 'ended']),
    outcome: z.enum(OUTCOMES).nullable(),
    message: z.string().nullable(),
    task: z.string(),
    repo: z.string().nullable(),
    ref: z.string().nullable(),
    agent: z.string(),
    model: z.string().nullable(),
    permission: z.enum(['auto', 'ask']),
    keep: z.boolean(),
    limits: z.object({
      wallClockSeconds: z.number(),
      idleSeconds: z.number(),
      approvalSeconds: z.number(),
      turns: z.number().nullable(),
      budgetUsd: z.number(),
    }),
    createdMs: timeMs,
    startedMs: timeMs.nullable(),
    endedMs: timeMs.nullable(),
    approvals: z.array(inputRequest).readonly().openapi({ description: 'Requests that wait for an answer.' }),
    usage: spent.extend({ turns: z.number() }),
    result: result.nullable().openapi({ description: 'Null until it has ended, and in lists.' }),
    publishable: z
      .object({
        problem: z.string().nullable().openapi({ description: 'Why its changes cannot be published.' }),
        pullRequest: z.boolean().openapi({ description: 'A pull request can be opened too.' }),
      })
      .nullable()
      .openapi({ description: 'For its owner, once it has ended; null in lists, and without a repository.' }),
    published: publishedView.nullable().openapi({ description: 'Where its changes were published last.' }),
  })
  .openapi('Run')
export const agentList = z
  .object({ agents: z.array(z.object({ name: z.string(), title: z.string() })) })
  .openapi('Agents')
export const runList = z.object({ runs: z.array(runView) }).openapi('Runs')

export const messageView = z
  .object({ id: z.string(), receipt: z.enum(['queued', 'started', 'completed', 'canceled']) })
  .openapi('RunMessageReceipt')
export const approvalView = z
  .object({
    requestId: z.string(),
    state: z.enum(['pending', 'answered', 'expired', 'withdrawn']),
    decision: z.enum(['allow', 'deny']).nullable(),
    by: z.string().nullable(),
  })
  .openapi('RunApprovalState')
