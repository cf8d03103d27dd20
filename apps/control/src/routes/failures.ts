import { SandwireError } from '@sandwire/protocol'
import { HTTPException } from 'hono/http-exception'
import { nameFault } from '../disk-full.ts'
import { refuseEnvelope, refuseSocket } from '../http/refuse-socket.ts'
import { isContractPath } from '../gateway/table.ts'
import { respondDetail, respondError } from '../http/respond.ts'
import { isEnvelopePath } from '../http/upgrade.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import { isToldInFrame } from './attach.ts'
import type { App } from './context.ts'
import { POLICIES } from './policies.ts'

const JSON_TYPE = /^application\/([a-z0-9.-]+\+)?json *(;|$)/i

/** The router throws errors of its own for bodies that are not JSON. */
function toSandwireError(caught: Error, headers: Headers): SandwireError {
  if (!(caught instanceof HTTPException) || caught.status >= 500) return nameFault(caught)
  const why = JSON_TYPE.test(headers.get('content-type') ?? '')
    ? 'not JSON'
    : 'its content-type is not application/json'
  return new SandwireError('bad_request', `Cannot read the body: ${why}`)
}

/** The methods that a path is served under; the router answers HEAD wherever it answers GET. */
function methodsOf(pathname: string): readonly string[] {
  const parts = pathname.split('/')
  return Object.keys(POLICIES).flatMap((route) => {
    const [method = '', path = ''] = route.split(' ')
    const pattern = path.split('/')
    const fits = (part: string, at: number): boolean => part.startsWith(':') || part === parts[at]
    if (parts.length !== pattern.length || !pattern.every(fits)) return []
    return method === 'GET' ? ['GET', 'HEAD'] : [method]
  })
}

/** The one place where errors become answers. */
export function addFailures(
  app: App,
  { log, metrics }: { readonly log: Log; readonly metrics: Metrics },
): void {
  app.notFound((context) => {
    const { pathname } = new URL(context.req.url)
    throw methodsOf(pathname).length > 0
      ? new SandwireError('method_not_allowed', 'Cannot use this method here')
      : new SandwireError('not_found', 'No such route')
  })
  app.onError((caught, context) => {
    const error = toSandwireError(caught, context.req.raw.headers)
    const requestId = context.get('requestId')
    metrics.count('sandwire_errors_total', { code: error.code })
    const cause = error.code === 'internal' ? { cause: String(error.cause) } : {}
    log.info('refused', { request_id: requestId, code: error.code, ...cause })
    const { pathname } = new URL(context.req.url)
    const respond = isContractPath(pathname) ? respondDetail : respondError
    if (error.code === 'method_not_allowed')
      return respond(error, requestId, { allow: methodsOf(pathname).join(', ') })
    return isToldInFrame(context.req.raw, error.code, context.get('identity') !== undefined)
      ? isEnvelopePath(new URL(context.req.url).pathname)
        ? refuseEnvelope(error, requestId, context.req.raw.headers)
        : refuseSocket(error, requestId)
      : respond(error, requestId)
  })
}
