import {
  encode,
  encodePty,
  ENVELOPE_SUBPROTOCOL,
  envelopeEndOf,
  ERRORS,
  messageWithWait,
  type SandwireError,
  SUBPROTOCOL,
} from '@sandwire/protocol'

/** A socket that says one thing and closes: browsers cannot read a refused upgrade. */
function sayAndClose(
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

/** Answers an upgrade to `sandwire.v1` with a refusal in its words. */
export function refuseSocket(error: SandwireError, requestId: string): Response {
  const { code } = error
  return sayAndClose(
    encode({ type: 'error', code, message: messageWithWait(error), fatal: true }),
    { code: ERRORS[code].close, reason: code },
    { 'sec-websocket-protocol': SUBPROTOCOL, 'x-request-id': requestId },
  )
}

/** The same to an envelope, whose clients rarely offer a subprotocol and may then be answered with none. */
export function refuseEnvelope(error: SandwireError, requestId: string, asked: Headers): Response {
  const { told, ...end } = envelopeEndOf(error)
  const hasOffer = (asked.get('sec-websocket-protocol') ?? '').includes(ENVELOPE_SUBPROTOCOL)
  return sayAndClose(encodePty(told), end, {
    ...(hasOffer ? { 'sec-websocket-protocol': ENVELOPE_SUBPROTOCOL } : {}),
    'x-request-id': requestId,
  })
}
