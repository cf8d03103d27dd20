import type { SocketHandler } from 'bun'

/** Receives the events of a connection. */
export interface SocketListener {
  readonly data: (bytes: Buffer) => void
  readonly drained: () => void
  /** The peer sends nothing more. */
  readonly ended: () => void
  /** Both directions are closed; `ended` may not have been called before. */
  readonly closed: () => void
  readonly broke: () => void
}

/**
 * Buffers the events of a connection until there is a listener: a peer may send bytes before the dialing code has the socket.
 * The socket is paused until then, so little is buffered.
 */
export class SocketEvents {
  readonly handlers: SocketHandler = {
    open: (socket) => {
      socket.setNoDelay(true)
      socket.pause()
    },
    data: (_, bytes) => {
      // Copied, because Bun reuses the buffer.
      if (this.#listener === undefined) bytes = Buffer.from(bytes)
      this.#notify(({ data }) => data(bytes))
    },
    drain: () => this.#notify(({ drained }) => drained()),
    end: () => this.#notify(({ ended }) => ended()),
    // Bun emits no end event when this side sent its FIN first.
    close: (_, error) =>
      this.#notify(({ closed, broke }) => (error === undefined || error === null ? closed() : broke())),
    error: (socket) => socket.terminate(),
    // The promise of the dial rejects too.
    connectError: () => undefined,
  }
  #held: ((listener: SocketListener) => void)[] = []
  #listener: SocketListener | undefined

  /** Delivers buffered events, then further ones immediately. */
  listen(listener: SocketListener): void {
    this.#listener = listener
    for (const event of this.#held.splice(0)) event(listener)
  }

  #notify(event: (listener: SocketListener) => void): void {
    if (this.#listener === undefined) this.#held.push(event)
    else event(this.#listener)
  }
}
