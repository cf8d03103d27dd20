import { SandwireError } from '@sandwire/protocol'
import type { Context, MiddlewareHandler } from 'hono'
import { z } from 'zod'
import type { Action } from '../audit/actions.ts'
import { AuditSampling } from '../audit/sampling.ts'
import { type AuditEntry, isRefusal, commandName } from '../audit/entry.ts'
import type { TicketBinding } from '../auth/identity.ts'
import { isProxiedPath } from '../workspace-proxy/routes.ts'
import { withDeadline } from '../http/deadline.ts'
import { readBoundedJson } from '../http/read-bounded.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import { unwrap } from '../outcome.ts'
import type { SandboxCall } from '../sandbox/call.ts'
import type { Directory } from '../sandbox/directory.ts'
import { parseSandboxRef } from '../sandbox/sandbox-id.ts'
import type { SessionNames } from '../sandbox/session-names.ts'
import { type AppEnv, callOf, identityOf } from './context.ts'

export interface AuditDependencies {
  readonly directory: Directory
  readonly sessionNames: SessionNames
  readonly log: Log
  readonly metrics: Metrics
  readonly nowMs: () => number
}

/** What a request names. */
export interface AuditTarget {
  readonly account?: string | undefined
  readonly sandbox?: string | undefined
  readonly session?: string | undefined
  /** Command that is to be run; of it only the name is written down. */
  readonly command?: string | undefined
}

/** Enough to name a sandbox. */
const MAX_REFUSED_BODY_BYTES = 16 * 1024
const REFUSED_BODY_MS = 1_000

/** Deeds about an account and not about a sandbox, which writes down its own. */
const OF_ACCOUNTS: ReadonlySet<Action> = new Set(['signin', 'signout', 'account.delete', 'account.remove'])

/**
 * Writes down what no sandbox's object could: that a credential was not good for something or that it was too much, and
 * what people do with their account. What an object has written down has the same id, so it stays one row.
 */
export function auditRequests(deps: AuditDependencies): MiddlewareHandler<AppEnv> {
  const { directory, log, metrics, nowMs } = deps
  const chatter = new AuditSampling()

  const noteRefusal = async (
    call: SandboxCall,
    target: AuditTarget,
    error: SandwireError,
    ticket: TicketBinding | undefined,
  ): Promise<void> => {
    // A ticket leads to its sandbox, whether or not the URL says so again.
    const place = (await placeOf(deps, call.identity, target)) ?? ticket
    const command = target.command === undefined ? {} : { command: commandName(target.command) }
    if (place === undefined) return noteOfAccount(call, error, { ...command, ...aboutAccount(target) })
    const about = { session: place.session, ...command }
    unwrap(await directory.sandbox(place.sandbox).recordRefusal(call, error.code, about))
  }

  const noteOfAccount = async (
    call: SandboxCall,
    error?: SandwireError,
    about: Pick<AuditEntry, 'command' | 'account'> = {},
  ): Promise<void> => {
    const { identity, name, address, requestId, action, login } = call
    if (action === undefined) return
    const entry = {
      id: `${requestId}.${action}`,
      atMs: nowMs(),
      actor: identity,
      actorName: name,
      action,
      ...({
        address,
        requestId,
        outcome: error === undefined ? 'allowed' : 'refused',
      } as const),
      ...(error === undefined ? {} : { code: error.code }),
      ...(login === undefined ? {} : { login }),
      ...about,
    }
    unwrap(await directory.account(identity).recordAudit(identity, [entry]))
  }

  return async (context, next) => {
    await next()
    const action = context.get('action')
    if (action === undefined || context.get('identity') === undefined) return
    const { error } = context
    const refusal = error instanceof SandwireError && isRefusal(error.code) ? error : undefined
    if (refusal === undefined && (error !== undefined || !OF_ACCOUNTS.has(action))) return
    const call = callOf(context)
    const outcome = refusal === undefined ? 'allowed' : 'refused'
    // What is not refused here is about one's own account.
    if (!chatter.admits({ actor: call.identity, action, outcome }, true, nowMs())) {
      metrics.count('sandwire_audit_left_out_total')
      return
    }
    try {
      const target = targetOf(context.get('target'), context.req.raw)
      if (refusal === undefined) await noteOfAccount(call, undefined, aboutAccount(target))
      else {
        // Read for a refusal alone: it comes before the body is looked at, and may be about what only that names.
        const named = bodyTarget.safeParse(await readBody(context))
        const whole = named.success ? { ...named.data, ...known(target) } : target
        await noteRefusal(call, whole, refusal, identityOf(context).ticket)
      }
    } catch (caught) {
      // The answer is the same; that the row is missing shows in the log.
      const { code, message } = SandwireError.from(caught)
      log.warn('audit_failed', { request_id: call.requestId, code, cause: message })
    }
  }
}

/** What a request says in its body, which is not worth waiting for where it was refused before that was read. */
async function readBody(context: Context<AppEnv>): Promise<unknown> {
  // One that streams is as large as anybody likes, and its sandbox is in the URL.
  if (isProxiedPath(context.req.path)) return undefined
  if (context.get('isBodyHeld') === true) return context.req.json().catch(() => undefined)
  const body = new Response(context.req.raw.body)
  const late = (): Error => new Error('The body did not come in time')
  const reading = withDeadline({ ms: REFUSED_BODY_MS, late }, (signal) =>
    readBoundedJson(body, MAX_REFUSED_BODY_BYTES, signal),
  )
  return reading.catch(() => undefined)
}

function aboutAccount({ account }: AuditTarget): Pick<AuditEntry, 'account'> {
  return account === undefined ? {} : { account }
}

/** What bodies call the sandbox and the session that they are about. */
const bodyTarget = z.object({ sandbox: z.string().exactOptional(), session: z.string().exactOptional() })

/** What of a target is known. */
function known(target: AuditTarget): AuditTarget {
  return Object.fromEntries(Object.entries(target).filter(([, value]) => value !== undefined))
}

/** What the path names, or the query of an attach. */
function targetOf(target: AuditTarget | undefined, request: Request): AuditTarget {
  const query = new URL(request.url).searchParams
  return {
    account: target?.account,
    sandbox: target?.sandbox ?? query.get('sandbox') ?? undefined,
    session: target?.session ?? query.get('session') ?? undefined,
    command: target?.command ?? query.get('cmd') ?? undefined,
  }
}

/** The sandbox whose owner is concerned, and the session by its id; undefined when that is the caller alone. */
async function placeOf(
  { directory, sessionNames }: AuditDependencies,
  account: string,
  { sandbox, session: name }: AuditTarget,
): Promise<{ readonly sandbox: string; readonly session?: string } | undefined> {
  try {
    if (name !== undefined) {
      const session = await sessionNames.resolve(name, account)
      return { sandbox: await directory.ofSession(session), session }
    }
    if (sandbox === undefined) return undefined
    return { sandbox: await directory.resolve(account, parseSandboxRef(sandbox)) }
  } catch {
    // It names nothing that is there.
    return undefined
  }
}
