import type { ServerWebSocket } from 'bun'
import type { ConnectionId, OutputStream } from '@sandwire/protocol'

/** What became of a frame handed to a socket. */
export type SendOutcome =
  | 'sent'
  /** Accepted, but the socket is full: wait for drain. */
  | 'full'
  /** Not accepted; the connection is broken or too far behind. */
  | 'lost'

/** A client with this much unsent data is disconnected; windows keep well-behaved clients far below. */
export const MAX_BUFFERED_BYTES = 4 * 1024 * 1024

/** Interprets the result of Bun's `send`: -1 is accepted with back-pressure, 0 is dropped, more is the number of bytes sent. */
export function sendFrame<T>(socket: ServerWebSocket<T>, data: string | Uint8Array): SendOutcome {
  const result = typeof data === 'string' ? socket.sendText(data) : socket.sendBinary(data)
  if (result === 0) return 'lost'
  if (result > 0) return 'sent'
  return socket.getBufferedAmount() > MAX_BUFFERED_BYTES ? 'lost' : 'full'
}

/** One connection as a session needs it. */
export interface SessionConnection {
  /** The request that became this connection. */
  readonly requestId: string
  send(data: string | Uint8Array): SendOutcome
  /** Sends output as one data frame; `bytes` are read before this returns. */
  sendOutput(stream: OutputStream, bytes: Uint8Array): SendOutcome
  close(code: number, reason: string): void
  /** Closes the TCP connection without a close frame. */
  terminate(): void
  /** The process accepted input; a connection that was paused for it may continue. */
  inputSettled(): void
}

/** The connections of one session. */
export class SessionConnections {
  readonly #connections = new Map<ConnectionId, SessionConnection>()
  /** Those that became an attachment; closing any other with a reason refuses it. */
  readonly #admitted = new Set<ConnectionId>()
  /** Called whenever the last one is removed. */
  #onEmpty: () => void = () => undefined

  add(id: ConnectionId, connection: SessionConnection): void {
    this.#connections.set(id, connection)
  }

  remove(id: ConnectionId): void {
    this.#connections.delete(id)
    this.#admitted.delete(id)
    if (this.#connections.size === 0) this.#onEmpty()
  }

  find(id: ConnectionId): SessionConnection | undefined {
    return this.#connections.get(id)
  }

  isAdmitted(id: ConnectionId): boolean {
    return this.#admitted.has(id)
  }

  admit(id: ConnectionId): void {
    this.#admitted.add(id)
  }

  inputSettled(): void {
    for (const connection of this.#connections.values()) connection.inputSettled()
  }

  /** Resolves when none is left, or after `timeoutMs`. */
  whenEmpty(timeoutMs: number): Promise<void> {
    if (this.#connections.size === 0) return Promise.resolve()
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, timeoutMs)
    this.#onEmpty = () => {
      clearTimeout(timer)
      resolve()
    }
    return promise
  }
}
