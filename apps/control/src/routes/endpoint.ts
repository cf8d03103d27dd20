import { createRoute, type RouteConfig, type z } from '@hono/zod-openapi'
import type { MiddlewareHandler } from 'hono'
import { actionOf } from '../audit/actions.ts'
import type { AppEnv } from './context.ts'
import { type Policy, policyOf } from './policies.ts'
import { errorBody } from './schemas.ts'
import { unambiguousBody } from './unambiguous-body.ts'
import { withoutQuery } from './without-query.ts'

/** Makes the middleware of a policy. */
export type GuardOf = (policy: Policy) => MiddlewareHandler<AppEnv>

/** An answer in JSON, for a route's `responses`. */
export function json<S extends z.ZodType>(schema: S, description: string) {
  return { description, content: { 'application/json': { schema } } }
}

/** A body in JSON; required, so that nothing else is taken for an empty one. */
export function body<S extends z.ZodType>(schema: S) {
  return { required: true, content: { 'application/json': { schema } } }
}

/** Turns `/a/{b}` into the router's `/a/:b`. */
function routerPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1')
}

/** Whether a route of the API declares no parameters; pages and sockets read theirs themselves. */
function takesNoQuery({
  path,
  request,
  parameters,
}: Pick<RouteConfig, 'path' | 'request' | 'parameters'>): boolean {
  return path.startsWith('/api/') && request?.query === undefined && parameters === undefined
}

/** Says what the audit calls a request, before anything can refuse it. */
function nameAction(method: string, path: string): MiddlewareHandler<AppEnv> {
  const action = actionOf(method, path)
  return (context, next) => {
    context.set('action', action)
    context.set('target', context.req.param())
    return next()
  }
}

/** Declares a route behind the guard of its policy; throws when it has none. */
export function endpoint<P extends string, R extends Omit<RouteConfig, 'path' | 'middleware'> & { path: P }>(
  guardOf: GuardOf,
  route: R,
) {
  const policy = policyOf(route.method, routerPath(route.path))
  return createRoute({
    ...route,
    security: policy === 'public' ? [] : [{ bearer: [] }],
    middleware: [
      nameAction(route.method, routerPath(route.path)),
      guardOf(policy),
      ...(takesNoQuery(route) ? [withoutQuery] : []),
      ...(route.request?.body === undefined ? [] : [unambiguousBody]),
    ],
    responses: { default: json(errorBody, 'What went wrong'), ...route.responses },
  })
}
