import type { MiddlewareHandler } from 'hono'
import { routePath } from 'hono/route'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import type { AppEnv } from './context.ts'

export interface RecordDependencies {
  readonly log: Log
  readonly metrics: Metrics
  readonly nowMs: () => number
  readonly mintRequestId: () => string
}

/** Gives every request an id, and logs its route and status; never its URL, which may contain secrets. */
export function recordRequests(deps: RecordDependencies): MiddlewareHandler<AppEnv> {
  const { log, metrics, nowMs, mintRequestId } = deps
  return async (context, next) => {
    const startedMs = nowMs()
    const requestId = mintRequestId()
    context.set('requestId', requestId)
    await next()
    const { status } = context.res
    const { method } = context.req
    const route = routePath(context, -1)
    // A 101 comes from the sandbox and is not modified.
    if (status !== 101) context.res.headers.set('x-request-id', requestId)
    const durationMs = nowMs() - startedMs
    metrics.count('sandwire_requests_total', { method, route, status: String(status) })
    metrics.count('sandwire_request_seconds_total', { method, route }, durationMs / 1000)
    log.info('request', { request_id: requestId, method, route, status, duration_ms: durationMs })
  }
}
