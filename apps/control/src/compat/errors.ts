import {
  claudeCloseOfError,
  COMPAT_SUBPROTOCOL,
  compatCloseOfError,
  encodeCompatMessage,
  textCloseOfError,
} from '@sandwire/internal-api'
import { type SandwireError } from '@sandwire/protocol'
import { sendAndClose } from '../http/refuse-socket.ts'
import { CODE_HEADER, respondJsonError } from '../http/respond.ts'

/** An error as compat clients read it over HTTP: `{"detail": …}`, its code in a header. */
export function respondDetail(
  error: SandwireError,
  requestId: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const body = { detail: error.message }
  return respondJsonError(error, requestId, body, { ...headers, [CODE_HEADER]: error.code })
}

/** Headers of an accepted upgrade. Most clients offer no subprotocol and must then get none. */
function upgradeHeaders(requestId: string, { headers }: Request): Readonly<Record<string, string>> {
  const offers = headers.get('sec-websocket-protocol') ?? ''
  return {
    ...(offers.includes(COMPAT_SUBPROTOCOL) ? { 'sec-websocket-protocol': COMPAT_SUBPROTOCOL } : {}),
    'x-request-id': requestId,
  }
}

/** Accepts a compat upgrade, sends the error and closes. */
export function refusePtySocket(error: SandwireError, requestId: string, request: Request): Response {
  const { last, ...end } = compatCloseOfError(error)
  return sendAndClose(encodeCompatMessage(last), end, upgradeHeaders(requestId, request))
}

/** The same for a client of `/ws/claude-stream`. */
export function refuseClaudeSocket(error: SandwireError, requestId: string, request: Request): Response {
  const { last, ...end } = claudeCloseOfError(error)
  return sendAndClose(last, end, upgradeHeaders(requestId, request))
}

/** Shows the error in a text terminal and closes. */
export function refuseTextSocket(error: SandwireError, requestId: string, request: Request): Response {
  const { notice, ...end } = textCloseOfError(error)
  return sendAndClose(notice, end, upgradeHeaders(requestId, request))
}
