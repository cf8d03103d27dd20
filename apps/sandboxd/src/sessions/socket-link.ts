import type { ServerWebSocket } from 'bun'

/** What became of a frame handed to a socket. */
export type SendOutcome =
  | 'sent'
  /** Taken, but the socket is full: wait for drain. */
  | 'full'
  /** Not taken; the connection is broken or hopelessly behind. */
  | 'lost'

/** A peer that has this much waiting for it is cut off; windows keep honest ones far below. */
export const MAX_BUFFERED_BYTES = 4 * 1024 * 1024

/** Reads what Bun's `send` returns: -1 is taken with back-pressure, 0 is dropped, more is the number of bytes sent. */
export function sendFrame<T>(socket: ServerWebSocket<T>, data: string | Uint8Array): SendOutcome {
  const result = typeof data === 'string' ? socket.sendText(data) : socket.sendBinary(data)
  if (result === 0) return 'lost'
  if (result > 0) return 'sent'
  return socket.getBufferedAmount() > MAX_BUFFERED_BYTES ? 'lost' : 'full'
}
