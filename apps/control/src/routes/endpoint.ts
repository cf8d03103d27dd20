import { createRoute, type RouteConfig, type z } from '@hono/zod-openapi'
import { SandwireError } from '@sandwire/protocol'
import type { MiddlewareHandler } from 'hono'
import { actionOf } from '../audit/actions.ts'
import { refuseDuplicateKeys } from '../http/request-body.ts'
import type { AppEnv } from './context.ts'
import { type Policy, policyOf } from './policies.ts'
import { errorBody } from './schemas.ts'

/** Most of a parameter's name that is echoed. */
const MAX_NAME_CHARS = 60

/** Creates the middleware of a policy. */
export type GuardOf = (policy: Policy) => MiddlewareHandler<AppEnv>

/** A JSON response, for a route's `responses`. */
export function json<S extends z.ZodType>(schema: S, description: string) {
  return { description, content: { 'application/json': { schema } } }
}

/** A required JSON body. */
export function body<S extends z.ZodType>(schema: S) {
  return { required: true, content: { 'application/json': { schema } } }
}

/** Turns `/a/{b}` into the router's `/a/:b`. */
function routerPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1')
}

/** True if a route of the API declares no parameters. Pages and sockets read theirs themselves. */
function takesNoQuery({
  path,
  request,
  parameters,
}: Pick<RouteConfig, 'path' | 'request' | 'parameters'>): boolean {
  return path.startsWith('/api/') && request?.query === undefined && parameters === undefined
}

/** Refuses any query parameter, for routes that take none. */
export const refuseQuery: MiddlewareHandler<AppEnv> = async (context, next) => {
  const [name] = new URL(context.req.url).searchParams.keys()
  if (name === undefined) return next()
  const shown = name.replace(/\p{C}/gu, '').slice(0, MAX_NAME_CHARS)
  throw new SandwireError('bad_request', `Cannot use "${shown}": unknown`)
}

/** Sets the audit action of a request before anything can refuse it. */
function setAction(method: string, path: string): MiddlewareHandler<AppEnv> {
  const action = actionOf(method, path)
  return (context, next) => {
    context.set('action', action)
    context.set('target', context.req.param())
    return next()
  }
}

/** Declares a route behind the guard of its policy; throws if it has no policy. */
export function endpoint<P extends string, R extends Omit<RouteConfig, 'path' | 'middleware'> & { path: P }>(
  guardOf: GuardOf,
  route: R,
) {
  const policy = policyOf(route.method, routerPath(route.path))
  return createRoute({
    ...route,
    security: policy === 'public' ? [] : [{ bearer: [] }],
    middleware: [
      setAction(route.method, routerPath(route.path)),
      guardOf(policy),
      ...(takesNoQuery(route) ? [refuseQuery] : []),
      ...(route.request?.body === undefined ? [] : [refuseDuplicateKeys]),
    ],
    responses: { default: json(errorBody, 'Error'), ...route.responses },
  })
}
