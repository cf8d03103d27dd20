import { encode, ERRORS, messageWithWait, type SandwireError, SUBPROTOCOL } from '@sandwire/protocol'

/** Answers an upgrade with a socket that says why and closes: browsers cannot read a refused upgrade. */
export function refuseSocket(error: SandwireError, requestId: string): Response {
  const { code } = error
  const { 0: client, 1: server } = new WebSocketPair()
  server.accept()
  server.send(encode({ type: 'error', code, message: messageWithWait(error), fatal: true }))
  server.close(ERRORS[code].close, code)
  return new Response(null, {
    status: 101,
    webSocket: client,
    headers: { 'sec-websocket-protocol': SUBPROTOCOL, 'x-request-id': requestId },
  })
}
