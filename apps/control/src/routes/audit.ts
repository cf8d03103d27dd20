import { z } from '@hono/zod-openapi'
import { SandwireError } from '@sandwire/protocol'
import { ACTIONS } from '../audit/actions.ts'
import { unwrap } from '../outcome.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { type App, callOf } from './context.ts'
import { endpoint, type GuardOf, json } from './endpoint.ts'
import { numberText } from './schemas.ts'

const DEFAULT_ROWS = 100
const MAX_ROWS = 1_000

const auditRow = z
  .object({
    atMs: z.int().openapi({ description: 'Milliseconds since 1970.' }),
    actor: z.string().openapi({ description: 'Account; empty: the server.' }),
    actorName: z.string(),
    action: z.enum(ACTIONS),
    sandbox: z.string().nullable(),
    sandboxName: z.string().nullable(),
    session: z.string().nullable(),
    grant: z.string().nullable(),
    account: z.string().nullable().openapi({ description: 'The affected account, if it is another.' }),
    address: z.string().openapi({ description: 'Network address; empty: unknown.' }),
    outcome: z.enum(['allowed', 'refused']),
    code: z.string().nullable().openapi({ description: 'Error code.' }),
    template: z.string().nullable(),
    command: z.string().nullable().openapi({ description: 'Name only, without arguments.' }),
    login: z.string().nullable(),
    requestId: z.string(),
    dropped: z.int().nullable().openapi({ description: 'Number of missing rows, for `audit.dropped`.' }),
    droppedSinceMs: z
      .int()
      .nullable()
      .openapi({ description: 'Time of the first missing row, for `audit.dropped`; `atMs`: of the last.' }),
  })
  .openapi('AuditRow')
const auditPage = z
  .object({
    rows: z.array(auditRow),
    next: z.string().nullable().openapi({ description: 'Value for `before`; null: no older rows.' }),
  })
  .openapi('Audit')

const auditQuery = z.strictObject({
  sandbox: z.string().min(1).max(63).optional().openapi({ description: 'Id or name.' }),
  action: z.enum(ACTIONS).optional(),
  since: numberText.optional().openapi({ description: 'Milliseconds since 1970.' }),
  before: z
    .string()
    .regex(/^[0-9]{1,15}-[0-9]{1,15}$/, 'expected `next` of an earlier response')
    .optional(),
  limit: numberText.optional().openapi({ description: `At most ${MAX_ROWS}. Default ${DEFAULT_ROWS}.` }),
})

function parseLimit(text: string | undefined): number {
  const limit = Number(text ?? DEFAULT_ROWS)
  if (limit >= 1 && limit <= MAX_ROWS) return limit
  throw new SandwireError('bad_request', `Cannot use "limit": expected 1 to ${MAX_ROWS}`)
}

/** Without the schema in its type: the account's object has formatted the page. */
const RESPONSES: Readonly<Record<200, { readonly description: string }>> = {
  200: json(auditPage, 'Rows of the last 90 days, newest first'),
}

/** `/api/audit`: audit events of the caller's account and sandboxes, newest first. */
export function addAuditRoutes(app: App, guardOf: GuardOf, lookup: SandboxLookup): void {
  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/audit',
      request: { query: auditQuery },
      responses: RESPONSES,
    }),
    async (context) => {
      const { sandbox, action, since, before, limit } = context.req.valid('query')
      const page = await lookup.account(callOf(context).identity).readAudit({
        limit: parseLimit(limit),
        ...(sandbox === undefined ? {} : { sandbox }),
        ...(action === undefined ? {} : { action }),
        ...(since === undefined ? {} : { sinceMs: Number(since) }),
        ...(before === undefined ? {} : { before }),
      })
      return context.body(unwrap(page), 200, { 'content-type': 'application/json' })
    },
  )
}
