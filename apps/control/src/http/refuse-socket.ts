import { encode, ERRORS, type SandwireError, SUBPROTOCOL } from '@sandwire/protocol'
import { retryAfterSeconds } from './respond.ts'

/** Answers an upgrade with a socket that says why and closes: browsers cannot read a refused upgrade. */
export function refuseSocket(error: SandwireError, requestId: string): Response {
  const { code } = error
  const waitSeconds = retryAfterSeconds(error)
  // A frame has no header to say it in.
  const message =
    waitSeconds === undefined ? error.message : `${error.message}: try again in ${waitSeconds} s`
  const { 0: client, 1: server } = new WebSocketPair()
  server.accept()
  server.send(encode({ type: 'error', code, message, fatal: true }))
  server.close(ERRORS[code].close, code)
  return new Response(null, {
    status: 101,
    webSocket: client,
    headers: { 'sec-websocket-protocol': SUBPROTOCOL, 'x-request-id': requestId },
  })
}
