import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Identity } from '../auth/authenticator.ts'
import type { SandboxCall } from '../sandbox/call.ts'

/** What middleware leaves for a route. */
export interface AppEnv {
  Variables: {
    readonly requestId: string
    /** Set on every route that is not public. */
    readonly identity: Identity | undefined
  }
}

export type App = OpenAPIHono<AppEnv>

/** The caller of a route behind a credential. */
export function callOf(context: { get(name: 'identity' | 'requestId'): unknown }): SandboxCall {
  const identity = context.get('identity') as Identity | undefined
  if (identity === undefined) throw new Error('The route has no identity: its policy is public')
  return { identity: identity.account, requestId: String(context.get('requestId')) }
}
