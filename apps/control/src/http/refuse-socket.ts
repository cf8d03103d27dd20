import { encode, ERRORS, formatRetryMessage, type SandwireError, SUBPROTOCOL } from '@sandwire/protocol'

/** Accepts an upgrade, sends one message and closes, because browsers cannot read the body of a refused upgrade. */
export function sendAndClose(
  text: string,
  { code, reason }: { readonly code: number; readonly reason: string },
  headers: Readonly<Record<string, string>>,
): Response {
  const { 0: client, 1: server } = new WebSocketPair()
  server.accept()
  server.send(text)
  server.close(code, reason)
  return new Response(null, { status: 101, webSocket: client, headers })
}

/** Refuses an upgrade to `sandwire.v1` with an error frame. */
export function refuseSocket(error: SandwireError, requestId: string): Response {
  const { code } = error
  return sendAndClose(
    encode({ type: 'error', code, message: formatRetryMessage(error), fatal: true }),
    { code: ERRORS[code].close, reason: code },
    { 'sec-websocket-protocol': SUBPROTOCOL, 'x-request-id': requestId },
  )
}
