import { type ErrorCode, SandwireError } from '@sandwire/protocol'
import { HTTPException } from 'hono/http-exception'
import { CLAUDE_STREAM_PATH } from '../compat/claude-query.ts'
import { refuseClaudeSocket, refusePtySocket, refuseTextSocket, respondDetail } from '../compat/errors.ts'
import { isCompatPath, isCompatSocket } from '../compat/workspace-routes.ts'
import { CONVERSATION_PATH, refuseConversation } from '../conversation/refuse.ts'
import { toSandwireError } from '../disk-full.ts'
import { refuseSocket } from '../http/refuse-socket.ts'
import { respondError } from '../http/respond.ts'
import { isTextTerminal, readUpgrade } from '../http/upgrade.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import type { App } from './context.ts'
import { POLICIES } from './policies.ts'

const JSON_TYPE = /^application\/([a-z0-9.-]+\+)?json *(;|$)/i

/** Converts what a handler threw. The router has its own exception for a body that is not JSON. */
function toError(caught: Error, headers: Headers): SandwireError {
  if (!(caught instanceof HTTPException) || caught.status >= 500) return toSandwireError(caught)
  const problem = JSON_TYPE.test(headers.get('content-type') ?? '')
    ? 'not JSON'
    : 'content-type is not application/json'
  return new SandwireError('bad_request', `Cannot read the body: ${problem}`)
}

/** The methods of a path; the router answers HEAD wherever it answers GET. */
function methodsOf(pathname: string): readonly string[] {
  const parts = pathname.split('/')
  return Object.keys(POLICIES).flatMap((route) => {
    const [method = '', path = ''] = route.split(' ')
    const pattern = path.split('/')
    const matches = (part: string, at: number): boolean => part.startsWith(':') || part === parts[at]
    if (parts.length !== pattern.length || !pattern.every(matches)) return []
    return method === 'GET' ? ['GET', 'HEAD'] : [method]
  })
}

/**
 * True if an upgrade is refused by a message on the accepted socket, because browsers cannot read the body of a refused
 * upgrade. Only for authenticated callers: accepting a socket costs more than a response.
 */
function isRefusedOnSocket(request: Request, code: ErrorCode, isAuthenticated: boolean): boolean {
  const { isUpgrade, isWellFormed, dialect } = readUpgrade(request)
  const canReadMessage =
    dialect === 'v1' || isCompatSocket(new URL(request.url).pathname) || isTextTerminal(request)
  return isAuthenticated && isUpgrade && isWellFormed && canReadMessage && code !== 'internal'
}

/** Refuses an upgrade in the language of its route. */
function refuseOnSocket(error: SandwireError, requestId: string, request: Request): Response {
  const { pathname } = new URL(request.url)
  if (isTextTerminal(request)) return refuseTextSocket(error, requestId, request)
  if (pathname === CONVERSATION_PATH) return refuseConversation(error, requestId)
  if (pathname === CLAUDE_STREAM_PATH) return refuseClaudeSocket(error, requestId, request)
  return isCompatSocket(pathname)
    ? refusePtySocket(error, requestId, request)
    : refuseSocket(error, requestId)
}

/** Installs the handlers that turn every error into a response. */
export function addErrorResponses(
  app: App,
  { log, metrics }: { readonly log: Log; readonly metrics: Metrics },
): void {
  app.notFound((context) => {
    const { pathname } = new URL(context.req.url)
    throw methodsOf(pathname).length > 0
      ? new SandwireError('method_not_allowed', 'Method not allowed')
      : new SandwireError('not_found', 'No such route')
  })
  app.onError((caught, context) => {
    const request = context.req.raw
    const error = toError(caught, request.headers)
    const requestId = context.get('requestId')
    metrics.count('sandwire_errors_total', { code: error.code })
    const { ceiling } = error.details
    if (ceiling !== undefined) metrics.count('sandwire_ceiling_refusals_total', { ceiling })
    const cause = error.code === 'internal' ? { cause: String(error.cause) } : {}
    log.info('request_failed', { request_id: requestId, code: error.code, ...cause })
    const { pathname } = new URL(request.url)
    if (isRefusedOnSocket(request, error.code, context.get('identity') !== undefined))
      return refuseOnSocket(error, requestId, request)
    const headers: Record<string, string> =
      error.code === 'method_not_allowed' ? { allow: methodsOf(pathname).join(', ') } : {}
    const respond = isCompatPath(pathname) ? respondDetail : respondError
    return respond(error, requestId, headers)
  })
}
