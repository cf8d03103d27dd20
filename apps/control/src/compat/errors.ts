import { COMPAT_SUBPROTOCOL, compatCloseOfError, encodeCompatMessage } from '@sandwire/internal-api'
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

/** Accepts a compat upgrade, sends the error and closes. Most clients offer no subprotocol and must then get none. */
export function refusePtySocket(error: SandwireError, requestId: string, request: Request): Response {
  const { last, ...end } = compatCloseOfError(error)
  const offers = request.headers.get('sec-websocket-protocol') ?? ''
  return sendAndClose(encodeCompatMessage(last), end, {
    ...(offers.includes(COMPAT_SUBPROTOCOL) ? { 'sec-websocket-protocol': COMPAT_SUBPROTOCOL } : {}),
    'x-request-id': requestId,
  })
}
