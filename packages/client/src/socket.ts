/** Events of one socket, in order; `closed` is called once and last. */
export interface SocketEvents {
  opened(): void
  message(data: string | Uint8Array): void
  /** `code` and `reason` are the peer's; 1006 when it sent no close frame. */
  closed(code: number, reason: string): void
}

/** The part of a WebSocket that an attachment needs. */
export interface Socket {
  send(data: string | Uint8Array): void
  close(code: number, reason: string): void
}

export interface SocketRequest {
  readonly url: URL
  readonly protocols: readonly string[]
  /** Sent with the upgrade where the platform allows it; browsers do not. */
  readonly headers: Readonly<Record<string, string>>
}

export type OpenSocket = (request: SocketRequest, events: SocketEvents) => Socket

/** Bun's constructor takes headers; a browser's takes protocols only. */
type WebSocketWithHeaders = new (
  url: string,
  options: { protocols: string[]; headers: Readonly<Record<string, string>> },
) => WebSocket

/** Opens the platform's WebSocket. */
export const openWebSocket: OpenSocket = (request, events) => {
  const protocols = [...request.protocols]
  const hasHeaders = Object.keys(request.headers).length > 0
  const socket = hasHeaders
    ? new (WebSocket as unknown as WebSocketWithHeaders)(request.url.href, {
        protocols,
        headers: request.headers,
      })
    : new WebSocket(request.url.href, protocols)
  socket.binaryType = 'arraybuffer'
  socket.addEventListener('open', () => events.opened())
  socket.addEventListener('message', ({ data }: MessageEvent<string | ArrayBuffer>) => {
    events.message(typeof data === 'string' ? data : new Uint8Array(data))
  })
  socket.addEventListener('close', (event) => events.closed(event.code, event.reason))
  // A close event always follows, and the error event has no details.
  socket.addEventListener('error', () => {})
  return {
    send: (data) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(data as string | Uint8Array<ArrayBuffer>)
    },
    close: (code, reason) => socket.close(code, reason),
  }
}
