import { z } from '@hono/zod-openapi'
import { isAllowEntry } from '@sandwire/network-policy'
import { ERRORS, limits, MAX_ARGS, MAX_CWD_CHARS, MODES, OVERFLOWS } from '@sandwire/protocol'
import { isSandboxName } from '../sandbox/sandbox-id.ts'

const MAX_SLEEP_SECONDS = 30 * 24 * 60 * 60
const MAX_ENV_CHARS = 32 * 1024

/** An integer of a range; the error names the range. */
export function between(min: number, max: number) {
  const error = `expected a whole number from ${min} to ${max}`
  return z.int({ error }).min(min, { error }).max(max, { error })
}

const NAME_RULE = 'expected lower-case letters, digits and hyphens (max 63)'
export const sandboxName = z.string({ error: NAME_RULE }).refine(isSandboxName, NAME_RULE).openapi({
  description: 'Lower-case letters, digits and inner hyphens, at most 63; unique within the account.',
  example: 'dev',
})
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,255}$/

/** Not a zod record, which ignores a key named `__proto__` instead of refusing it. */
function isEnv(value: unknown): value is Record<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const entries: [string, unknown][] = Object.entries(value)
  return (
    entries.length <= limits.MAX_ENV_ENTRIES &&
    entries.every(
      ([key, text]) => ENV_NAME.test(key) && typeof text === 'string' && text.length <= MAX_ENV_CHARS,
    )
  )
}
const env = z
  .custom<Record<string, string>>(
    isEnv,
    `expected at most ${limits.MAX_ENV_ENTRIES} variables with values of at most ${MAX_ENV_CHARS} characters`,
  )
  .openapi({
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'Environment of every process. Not for secrets.',
  })

export const network = z.strictObject({
  policy: z.enum(['none', 'allowlist', 'open']),
  allow: z
    .array(z.string().max(253).refine(isAllowEntry, 'expected a host, *.host, host:port or set:NAME'))
    .max(256)
    .default([]),
})
const sandboxLimits = z.strictObject({
  memoryBytes: between(16 * 1024 ** 2, 1024 ** 4),
  pids: between(8, 100_000),
  milliCpus: between(10, 1_000_000),
  diskBytes: between(1024 ** 2, 1024 ** 5),
})

/** Body of `POST /api/sandboxes`. */
export const createSandboxBody = z
  .strictObject({
    name: sandboxName.optional(),
    network: network.optional(),
    limits: sandboxLimits.partial().optional().openapi({
      description: 'Defaults and ceilings are those of `/api/account/usage`.',
    }),
    env: env.optional(),
    sleepAfterSeconds: between(1, MAX_SLEEP_SECONDS).nullable().optional().openapi({
      description: 'Stop after this long without input and output; null: never.',
    }),
    start: z.boolean().optional().openapi({ description: 'Start the sandbox at once. Default true.' }),
  })
  .openapi('CreateSandbox')

export const envBody = z.strictObject({ env }).openapi('SetEnv')
export const signInBody = z
  .strictObject({ code: z.string().regex(/^[A-Za-z0-9_-]{16,128}$/) })
  .openapi('SignIn')

/** Not a zod record, as for `env`. The template validates the values. */
function isTextRecord(value: unknown): value is Record<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return Object.values(value).every((text) => typeof text === 'string')
}
const templateParams = z
  .custom<Record<string, string>>(isTextRecord, 'expected an object of strings')
  .openapi({
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'Parameters of the template.',
  })

const processFields = {
  createId: z
    .string()
    .regex(/^[0-9a-f]{32}$/)
    .optional()
    .openapi({ description: 'Repeating the request with it starts no second process.' }),
  cmd: z.string().min(1).optional(),
  args: z
    .array(z.string())
    .max(MAX_ARGS - 1)
    .optional(),
  cwd: z.string().max(MAX_CWD_CHARS).optional(),
  env: env.optional(),
}
export const startProcessBody = z
  .strictObject({
    ...processFields,
    pane: z
      .string()
      .regex(/^%\d{1,9}$/)
      .optional()
      .openapi({ description: 'Show this pane of tmux instead of running a command.' }),
    mode: z.enum(MODES).optional(),
    cols: between(1, limits.MAX_CELLS).optional(),
    rows: between(1, limits.MAX_CELLS).optional(),
    keep: between(1, limits.MAX_KEEP_SECONDS).optional(),
    lifetime: between(1, limits.MAX_SESSION_SECONDS).optional().openapi({
      description: 'Seconds from its creation until the session is ended; at most the limit of the server.',
    }),
    idle: between(1, limits.MAX_SESSION_SECONDS).optional().openapi({
      description:
        'Seconds without input and output until a session with an attached client is ended; at most the limit of the server.',
    }),
    overflow: z.enum(OVERFLOWS).optional(),
    pinned: z
      .boolean()
      .optional()
      .openapi({ description: 'The sandbox does not sleep while the process runs.' }),
    template: z.string().max(64).optional().openapi({
      description: 'Run this command template, which defines cmd, args, env, mode and cwd.',
    }),
    params: templateParams.optional(),
  })
  .openapi('StartProcess')
export const execBody = z
  .strictObject({
    ...processFields,
    cmd: z.string().min(1),
    timeoutSeconds: between(1, 60).default(30),
  })
  .openapi('Exec')

/** Path parameters; decoded by `parseSandboxRef` and `sandboxIdOf`. */
export const sandboxParams = z.object({
  sandbox: z.string().openapi({ param: { name: 'sandbox', in: 'path' }, description: 'Id or name.' }),
})
export const sessionParams = z.object({
  session: z.string().openapi({ param: { name: 'session', in: 'path' } }),
})
export const sandboxSessionParams = sandboxParams.extend(sessionParams.shape)

/** A whole number in a query. */
export const numberText = z.string().regex(/^(0|[1-9][0-9]{0,14})$/)
export const stopQuery = z.strictObject({
  discard: z.enum(['0', '1']).optional().openapi({ description: 'Stop even if the files are lost.' }),
})
export const logsQuery = z.strictObject({ bytes: numberText.optional() })
export const outputQuery = z.strictObject({ from: numberText.optional() })

const timeMs = z.int().openapi({ description: 'Milliseconds since 1970.' })

const access = z
  .enum(['owner', 'collaborator', 'viewer'])
  .optional()
  .openapi({ description: 'Access of the caller; absent: owner.' })
const owner = z.string().optional().openapi({ description: 'Name of the owner, for other accounts.' })

export const sandboxView = z
  .object({
    id: z.string(),
    name: z.string(),
    state: z.enum(['creating', 'running', 'stopping', 'stopped', 'failed', 'destroying']),
    reason: z.string().nullable(),
    createdMs: timeMs,
    startedMs: timeMs.nullable(),
    lastActivityMs: timeMs,
    sleepAfterSeconds: z.int().nullable(),
    ephemeral: z.boolean().openapi({ description: 'Files do not survive a stop.' }),
    saved: z
      .object({
        state: z.enum(['idle', 'pending', 'syncing', 'flushing', 'retrying', 'error']),
        savedMs: timeMs.nullable(),
        error: z.string().nullable(),
        restored: z
          .object({
            version: z.int(),
            savedMs: timeMs,
            restoredMs: timeMs,
            reason: z.enum(['requested', 'started', 'lost']),
          })
          .nullable()
          .openapi({
            description:
              'The version that the running sandbox started with; `lost`: changes after it were lost. Null: it found its files.',
          }),
      })
      .nullable()
      .openapi({ description: 'Whether its files are saved; null: this server does not save them.' }),
    network,
    isolation: z.enum(['bubblewrap', 'container', 'sprite', 'none']).nullable().openapi({
      description: 'Isolation; null: currently unknown. With `none`, network and limits are not enforced.',
    }),
    limits: sandboxLimits
      .nullable()
      .openapi({ description: 'Null for containers, whose limits the server does not set.' }),
    env: z.array(z.string()).readonly().openapi({ description: 'Names only.' }),
    access,
    owner,
  })
  .openapi('Sandbox')
export const sandboxList = z.object({ sandboxes: z.array(sandboxView) }).openapi('Sandboxes')

/** What the credential gateway has counted. */
export const spent = z.object({
  requests: z.number(),
  inputTokens: z.number(),
  outputTokens: z.number(),
  cacheReadTokens: z.number(),
  cacheWriteTokens: z.number(),
  costUsd: z.number(),
})

export const sessionView = z
  .object({
    id: z.string(),
    sandbox: z.string(),
    sandboxName: z.string().optional(),
    state: z.enum(['pending', 'running', 'exited', 'gone']),
    mode: z.enum(MODES),
    cmd: z.string(),
    agentRun: z.string().optional().openapi({
      description:
        'The run of a coding agent that opened it. For conversations, the run of an agent program.',
    }),
    agentInterface: z.boolean().optional().openapi({
      description: 'It is the interface of a coding agent, with a grant of the credential gateway.',
    }),
    usage: spent.optional().openapi({ description: 'What that interface has spent.' }),
    budgetUsd: z.number().optional().openapi({ description: 'What it may spend.' }),
    attachments: z.int(),
    people: z.array(z.string()).openapi({ description: 'Names of the attached users.' }),
    output: z
      .object({ start: z.int(), end: z.int() })
      .openapi({ description: 'Offsets of the available output.' }),
    createdMs: timeMs.nullable(),
    lastInputMs: timeMs.nullable(),
    lastOutputMs: timeMs.nullable(),
    keepSeconds: z.int(),
    exit: z
      .object({ code: z.int().nullable(), signal: z.string().nullable(), truncated: z.boolean() })
      .nullable(),
    pinned: z.boolean().openapi({ description: 'The sandbox does not sleep while it runs.' }),
    access,
    owner,
  })
  .openapi('Session')
const sessionToken = z.string().optional().openapi({
  description: 'Replaces the id in `/attach` and `/terminal`, for this account and for a limited time.',
})
export const namedSessionView = sessionView.extend({ token: sessionToken }).openapi('NamedSession')
export const sessionList = z.object({ sessions: z.array(sessionView) }).openapi('Sessions')

export const execResult = z
  .object({
    session: z.string(),
    exit: z.object({ code: z.int().nullable(), signal: z.string().nullable() }),
    output: z.string().openapi({ description: 'The last MiB of both streams, in order.' }),
    isCut: z.boolean().openapi({ description: 'Earlier output was dropped.' }),
  })
  .openapi('ExecResult')

export const errorBody = z
  .object({
    error: z.object({
      code: z.enum(Object.keys(ERRORS)),
      message: z.string(),
      field: z.string().optional(),
      problem: z.string().optional(),
      reason: z.enum(['sign_in_ended']).optional(),
      ceiling: z.string().optional().openapi({ description: 'Such as `account.memoryBytes`.' }),
      limit: z.union([z.number(), z.array(z.string())]).optional(),
      used: z.number().optional(),
      asked: z.union([z.number(), z.string()]).nullable().optional(),
      request_id: z.string(),
    }),
  })
  .openapi('Error')

/** An error of the compat API. */
export const detailBody = z.object({ detail: z.unknown() }).openapi('Detail')
