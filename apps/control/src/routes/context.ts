import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Context } from 'hono'
import type { Action } from '../audit/actions.ts'
import type { Identity } from '../auth/identity.ts'
import { addressOf } from '../http/client-address.ts'
import type { SandboxCall } from '../sandbox/call.ts'
import type { AuditTarget } from './audit-requests.ts'

/** What middleware leaves for a route. */
export interface AppEnv {
  Variables: {
    readonly requestId: string
    /** Set on every route that is not public. */
    readonly identity: Identity | undefined
    /** What the audit calls a request to this route. */
    readonly action: Action | undefined
    /** The body was read whole, within bounds, and can be read again. */
    readonly isBodyHeld: boolean | undefined
    /** What the path names. */
    readonly target: AuditTarget | undefined
  }
}

export type App = OpenAPIHono<AppEnv>

/** The part of a request's context that says who asks. */
interface Asking {
  readonly req: { readonly raw: Request }
  get(name: 'identity' | 'requestId' | 'action'): unknown
}

/** Who asks on a route behind a credential. */
export function identityOf(context: Asking): Identity {
  const identity = context.get('identity') as Identity | undefined
  if (identity === undefined) throw new Error('The route has no identity: its policy is public')
  return identity
}

/** Says who has signed in on a public route, so that it is written down in their audit. */
export function setSignedIn(context: Context<AppEnv>, person: Omit<Identity, 'via'>): void {
  context.set('identity', { ...person, via: 'cookie' })
}

/** Says which command is asked for, so that its name is written down when it is refused. */
export function noteCommand(context: Context<AppEnv>, command: string | undefined): void {
  if (command !== undefined) context.set('target', { ...context.get('target'), command })
}

/** The caller of a route behind a credential, as objects are told. */
export function callOf(context: Asking): SandboxCall {
  return callFor(context, identityOf(context))
}

/** A call of somebody whom the route itself knows. */
export function callFor(context: Asking, person: Omit<Identity, 'via'>): SandboxCall {
  const { account, name, scopes, login, token, issuedMs, expiresMs } = person
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
