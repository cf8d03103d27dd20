import { SandwireError } from '@sandwire/protocol'
import { HTTPException } from 'hono/http-exception'
import { refuseSocket } from '../http/refuse-socket.ts'
import { respondError } from '../http/respond.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import { isToldInFrame } from './attach.ts'
import type { App } from './context.ts'
import { POLICIES } from './policies.ts'

/** The router throws errors of its own for bodies that are not JSON. */
function toSandwireError(caught: Error): SandwireError {
  return caught instanceof HTTPException && caught.status < 500
    ? new SandwireError('bad_request', 'Cannot read the body: not JSON')
    : SandwireError.from(caught)
}

/** Whether a path is served under another method. */
function isServedOtherwise(pathname: string): boolean {
  const parts = pathname.split('/')
  return Object.keys(POLICIES).some((route) => {
    const pattern = route.slice(route.indexOf(' ') + 1).split('/')
    const fits = (part: string, at: number): boolean => part.startsWith(':') || part === parts[at]
    return parts.length === pattern.length && pattern.every(fits)
  })
}

/** The one place where errors become answers. */
export function addFailures(
  app: App,
  { log, metrics }: { readonly log: Log; readonly metrics: Metrics },
): void {
  app.notFound((context) => {
    const { pathname } = new URL(context.req.url)
    throw isServedOtherwise(pathname)
      ? new SandwireError('method_not_allowed', 'Cannot use this method here')
      : new SandwireError('not_found', 'No such route')
  })
  app.onError((caught, context) => {
    const error = toSandwireError(caught)
    const requestId = context.get('requestId')
    metrics.count('sandwire_errors_total', { code: error.code })
    const cause = error.code === 'internal' ? { cause: String(error.cause) } : {}
    log.info('refused', { request_id: requestId, code: error.code, ...cause })
    return isToldInFrame(context.req.raw, error.code, context.get('identity') !== undefined)
      ? refuseSocket(error, requestId)
      : respondError(error, requestId)
  })
}
