import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Context } from 'hono'
import type { Action } from '../audit/actions.ts'
import type { Identity } from '../auth/identity.ts'
import { addressOf } from '../http/client-address.ts'
import type { SandboxCall } from '../sandbox/call.ts'

/** What a request refers to. */
export interface AuditTarget {
  readonly account?: string | undefined
  readonly sandbox?: string | undefined
  readonly session?: string | undefined
  /** Command to run; only its name is recorded. */
  readonly command?: string | undefined
}

/** Values that middleware sets for a route. */
export interface AppEnv {
  Variables: {
    readonly requestId: string
    /** Set on every route that is not public. */
    readonly identity: Identity | undefined
    /** Audit action of the route. */
    readonly action: Action | undefined
    /** The body is buffered and can be read again. */
    readonly isBodyHeld: boolean | undefined
    /** What the path refers to. */
    readonly target: AuditTarget | undefined
  }
}

export type App = OpenAPIHono<AppEnv>

/** The part of a request's context that identifies the caller. */
interface CallerContext {
  readonly req: { readonly raw: Request }
  get(name: 'identity' | 'requestId' | 'action'): unknown
}

/** The caller of a route that is not public. */
export function identityOf(context: CallerContext): Identity {
  const identity = context.get('identity') as Identity | undefined
  if (identity === undefined) throw new Error('The route has no identity: its policy is public')
  return identity
}

/** Sets the user who signed in on a public route, for the audit. */
export function setSignedIn(context: Context<AppEnv>, user: Omit<Identity, 'via'>): void {
  context.set('identity', { ...user, via: 'cookie' })
}

/** Sets the requested command, so that a refusal is audited with its name. */
export function noteCommand(context: Context<AppEnv>, command: string | undefined): void {
  if (command !== undefined) context.set('target', { ...context.get('target'), command })
}

/** The caller of a route that is not public, as passed to objects. */
export function callOf(context: CallerContext): SandboxCall {
  return callFor(context, identityOf(context))
}

/** A call on behalf of a user that the route has identified itself. */
export function callFor(context: CallerContext, user: Omit<Identity, 'via'>): SandboxCall {
  const { account, name, scopes, login, token, issuedMs, expiresMs } = user
  const action = context.get('action') as Action | undefined
  return {
    identity: account,
    name,
    scopes,
    ...(login === undefined ? {} : { login }),
    ...(token === undefined ? {} : { token }),
    ...(issuedMs === undefined ? {} : { issuedMs }),
    ...(expiresMs === undefined ? {} : { expiresMs }),
    address: addressOf(context.req.raw),
    requestId: String(context.get('requestId')),
    ...(action === undefined ? {} : { action }),
  }
}
