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
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { parseSandboxRef } from '../sandbox/sandbox-id.ts'
import type { SessionNames } from '../sandbox/session-names.ts'
import { type AppEnv, type AuditTarget, callOf, identityOf } from './context.ts'

export interface AuditDependencies {
  readonly lookup: SandboxLookup
  readonly sessionNames: SessionNames
  readonly log: Log
  readonly metrics: Metrics
  readonly nowMs: () => number
}

/** Enough to hold the name of a sandbox. */
const MAX_REFUSED_BODY_BYTES = 16 * 1024
const REFUSED_BODY_MS = 1_000

/** Actions on an account; actions on a sandbox are recorded by its object. */
const ACCOUNT_ACTIONS: ReadonlySet<Action> = new Set([
  'signin',
  'signout',
  'account.delete',
  'account.remove',
])

/**
 * Records audit events that no sandbox's object sees: refusals by the guard or a rate limit, and actions on accounts. An event
 * that an object has recorded too has the same id and stays one row.
 */
export function auditRequests(deps: AuditDependencies): MiddlewareHandler<AppEnv> {
  const { lookup, log, metrics, nowMs } = deps
  const chatter = new AuditSampling()

  const noteRefusal = async (
    call: SandboxCall,
    target: AuditTarget,
    error: SandwireError,
    ticket: TicketBinding | undefined,
  ): Promise<void> => {
    // A ticket identifies its sandbox even if the URL does not.
    const location = (await locationOf(deps, call.identity, target)) ?? ticket
    const command = target.command === undefined ? {} : { command: commandName(target.command) }
    if (location === undefined) return noteOfAccount(call, error, { ...command, ...accountOf(target) })
    const details = { session: location.session, ...command }
    unwrap(await lookup.sandbox(location.sandbox).recordRefusal(call, error.code, details))
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
      address,
      requestId,
      outcome: error === undefined ? ('allowed' as const) : ('refused' as const),
      ...(error === undefined ? {} : { code: error.code }),
      ...(login === undefined ? {} : { login }),
      ...about,
    }
    unwrap(await lookup.account(identity).recordAudit(identity, [entry]))
  }

  return async (context, next) => {
    await next()
    const action = context.get('action')
    if (action === undefined || context.get('identity') === undefined) return
    const { error } = context
    const refusal = error instanceof SandwireError && isRefusal(error.code) ? error : undefined
    if (refusal === undefined && (error !== undefined || !ACCOUNT_ACTIONS.has(action))) return
    const call = callOf(context)
    const outcome = refusal === undefined ? 'allowed' : 'refused'
    // An allowed action here concerns the caller's own account.
    if (!chatter.admits({ actor: call.identity, action, outcome }, true, nowMs())) {
      metrics.count('sandwire_audit_dropped_total')
      return
    }
    try {
      const target = targetOf(context.get('target'), context.req.raw)
      if (refusal === undefined) await noteOfAccount(call, undefined, accountOf(target))
      else {
        // A refusal may precede the decoding of the body, which may be all that names the sandbox.
        const named = bodyTarget.safeParse(await readBody(context))
        const whole = named.success ? { ...named.data, ...definedFields(target) } : target
        await noteRefusal(call, whole, refusal, identityOf(context).ticket)
      }
    } catch (caught) {
      // The response does not depend on it; the log shows the missing row.
      const { code, message } = SandwireError.from(caught)
      log.warn('audit_failed', { request_id: call.requestId, code, cause: message })
    }
  }
}

/** The body of a request. Waits only briefly for one that was refused before it was read. */
async function readBody(context: Context<AppEnv>): Promise<unknown> {
  // Streamed bodies are unbounded, and their sandbox is in the URL.
  if (isProxiedPath(context.req.path)) return undefined
  if (context.get('isBodyHeld') === true) return context.req.json().catch(() => undefined)
  const body = new Response(context.req.raw.body)
  const late = (): Error => new Error('Timed out')
  const reading = withDeadline({ ms: REFUSED_BODY_MS, late }, (signal) =>
    readBoundedJson(body, MAX_REFUSED_BODY_BYTES, signal),
  )
  return reading.catch(() => undefined)
}

function accountOf({ account }: AuditTarget): Pick<AuditEntry, 'account'> {
  return account === undefined ? {} : { account }
}

/** Fields of a body that name a sandbox or a session. */
const bodyTarget = z.object({ sandbox: z.string().exactOptional(), session: z.string().exactOptional() })

/** A target without fields that are undefined. */
function definedFields(target: AuditTarget): AuditTarget {
  return Object.fromEntries(Object.entries(target).filter(([, value]) => value !== undefined))
}

/** The target in the path, or in the query of an attach. */
function targetOf(target: AuditTarget | undefined, request: Request): AuditTarget {
  const query = new URL(request.url).searchParams
  return {
    account: target?.account,
    sandbox: target?.sandbox ?? query.get('sandbox') ?? undefined,
    session: target?.session ?? query.get('session') ?? undefined,
    command: target?.command ?? query.get('cmd') ?? undefined,
  }
}

/** The sandbox and session of a target; undefined if it has none or does not exist. */
async function locationOf(
  { lookup, sessionNames }: AuditDependencies,
  account: string,
  { sandbox, session: name }: AuditTarget,
): Promise<{ readonly sandbox: string; readonly session?: string } | undefined> {
  try {
    if (name !== undefined) {
      const session = await sessionNames.resolve(name, account)
      return { sandbox: await lookup.ofSession(session), session }
    }
    if (sandbox === undefined) return undefined
    return { sandbox: await lookup.resolve(account, parseSandboxRef(sandbox)) }
  } catch {
    // It does not exist.
    return undefined
  }
}
