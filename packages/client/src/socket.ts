/** Events of one connection, told in order; `closed` comes once and last. */
export interface SocketEvents {
  opened(): void
  message(data: string | Uint8Array): void
  /** `code` and `reason` are the peer's, or 1006 when there was no goodbye. */
  closed(code: number, reason: string): void
}

/** The least of a WebSocket that an attachment needs. */
export interface Socket {
  send(data: string | Uint8Array): void
  close(code: number, reason: string): void
}

/** How to reach the server. */
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
  // A close event always follows; the error event itself says nothing a program can use.
  socket.addEventListener('error', () => {})
  return {
    send: (data) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(data as string | Uint8Array<ArrayBuffer>)
    },
    close: (code, reason) => socket.close(code, reason),
  }
}
