import { encode, ERRORS, type SandwireError, SUBPROTOCOL } from '@sandwire/protocol'

/** Answers an upgrade with a socket that says why and closes: browsers cannot read a refused upgrade. */
export function refuseSocket({ code, message }: SandwireError, requestId: string): Response {
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
