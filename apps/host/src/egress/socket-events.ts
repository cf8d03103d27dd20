import type { SocketHandler } from 'bun'

/** Who is told what happens on a connection. */
export interface SocketListener {
  readonly data: (bytes: Buffer) => void
  readonly drained: () => void
  /** The peer sends nothing more. */
  readonly ended: () => void
  /** Both directions are over; `ended` may not have been told before. */
  readonly closed: () => void
  readonly broke: () => void
}

/**
 * What happens on a connection from its first moment, held until somebody listens: a peer that speaks first may do so
 * before whoever dialled knows that there is a connection. It is paused until then, so little is held.
 */
export class SocketEvents {
  readonly handlers: SocketHandler = {
    open: (socket) => {
      socket.setNoDelay(true)
      socket.pause()
    },
    data: (_, bytes) => {
      // The buffer is the runtime's, and this may have to wait.
      if (this.#listener === undefined) bytes = Buffer.from(bytes)
      this.#notify(({ data }) => data(bytes))
    },
    drain: () => this.#notify(({ drained }) => drained()),
    end: () => this.#notify(({ ended }) => ended()),
    // Bun leaves out the end when this side's FIN went first.
    close: (_, error) =>
      this.#notify(({ closed, broke }) => (error === undefined || error === null ? closed() : broke())),
    error: (socket) => socket.terminate(),
    // The promise of the dial says it too.
    connectError: () => undefined,
  }
  #held: ((listener: SocketListener) => void)[] = []
  #listener: SocketListener | undefined

  /** Tells everything that happened so far, and from now on at once. */
  listen(listener: SocketListener): void {
    this.#listener = listener
    for (const event of this.#held.splice(0)) event(listener)
  }

  #notify(event: (listener: SocketListener) => void): void {
    if (this.#listener === undefined) this.#held.push(event)
    else event(this.#listener)
  }
}
