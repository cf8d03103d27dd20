import { SandwireError } from '@sandwire/protocol'
import type { Context, MiddlewareHandler } from 'hono'
import { z } from 'zod'
import type { Action } from '../audit/actions.ts'
import { DropCounts } from '../audit/drop-counts.ts'
import { AuditSampling } from '../audit/sampling.ts'
import { type AuditEntry, isRefusal, commandName } from '../audit/entry.ts'
import type { TicketBinding } from '../auth/identity.ts'
import { isProxiedPath } from '../workspace-proxy/routes.ts'
import { withDeadline } from '../http/deadline.ts'
import { readBoundedJson } from '../http/read-bounded.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import { isAudited, unwrap } from '../outcome.ts'
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
  readonly sleep: (ms: number) => Promise<void>
  readonly mintId: () => string
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

/** A caller and the sandbox whose audit its events belong to, as far as the URL names it. */
interface EventSource {
  readonly call: SandboxCall
  readonly target: AuditTarget
}

/**
 * Records audit events that no sandbox's object sees: refusals by the guard or a rate limit, and actions on accounts. Events
 * that are dropped are counted, and each count is recorded as an event.
 */
export function auditRequests(deps: AuditDependencies): MiddlewareHandler<AppEnv> {
  const { lookup, log, metrics, nowMs, sleep, mintId } = deps
  const sampling = new AuditSampling()
  const drops = new DropCounts<EventSource>({
    nowMs,
    sleep,
    record: async ({ call, target }, counted) => {
      const location = await locationOf(deps, call.identity, target)
      if (location === undefined) return noteDropped(call, counted)
      unwrap(await lookup.sandbox(location.sandbox).recordDropped(call, counted))
    },
    onFailure: (error, { call }) => logFailure(call, error),
  })

  const logFailure = ({ requestId }: SandboxCall, caught: unknown): void => {
    const { code, message } = SandwireError.from(caught)
    log.warn('audit_failed', { request_id: requestId, code, cause: message })
  }

  const noteDropped = async (
    { identity, name }: SandboxCall,
    { dropped, sinceMs }: { readonly dropped: number; readonly sinceMs: number },
  ): Promise<void> => {
    const requestId = mintId()
    const entry = {
      id: `${requestId}.audit.dropped`,
      atMs: nowMs(),
      actor: identity,
      actorName: name,
      action: 'audit.dropped' as const,
      address: '',
      requestId,
      outcome: 'allowed' as const,
      dropped,
      droppedSinceMs: sinceMs,
    }
    unwrap(await lookup.account(identity).recordAudit(identity, [entry]))
  }

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
    // The sandbox's object has recorded it.
    if (refusal !== undefined && isAudited(refusal)) return
    const call = callOf(context)
    const target = targetOf(context.get('target'), context.req.raw)
    const countDropped = (): void => {
      metrics.count('sandwire_audit_dropped_total')
      const key = JSON.stringify([call.identity, target.sandbox, target.session])
      context.executionCtx.waitUntil(drops.count(key, { call, target }))
    }
    const outcome = refusal === undefined ? 'allowed' : 'refused'
    // An allowed action here concerns the caller's own account.
    if (
      !sampling.admits(
        { actor: call.identity, action, outcome, ...(refusal === undefined ? {} : { code: refusal.code }) },
        true,
        nowMs(),
      )
    )
      return countDropped()
    try {
      if (refusal === undefined) await noteOfAccount(call, undefined, accountOf(target))
      else {
        // A refusal may precede the decoding of the body, which may be all that names the sandbox.
        const named = bodyTarget.safeParse(await readBody(context))
        const whole = named.success ? { ...named.data, ...definedFields(target) } : target
        await noteRefusal(call, whole, refusal, identityOf(context).ticket)
      }
    } catch (caught) {
      // The response does not depend on it.
      logFailure(call, caught)
      countDropped()
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
