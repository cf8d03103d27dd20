import type { TCPSocketListener } from 'bun'
import { createEnd, type End, SpliceConnection, type SpliceSocket } from './splice-connection.ts'

export interface SpliceOptions {
  readonly maxConnections: number
  /** Called when the first of a row of connections is refused for want of room. */
  readonly onFull?: (connections: number) => void
}

const pairedHandlers = {
  data: (socket: SpliceSocket, bytes: Uint8Array) => socket.data.connection?.received(socket, bytes),
  drain: (socket: SpliceSocket) => socket.data.connection?.drained(socket),
  end: (socket: SpliceSocket) => socket.data.connection?.ended(socket),
  close: (socket: SpliceSocket, error?: Error) =>
    socket.data.connection?.gone(socket, error !== undefined && error !== null),
  error: (socket: SpliceSocket) => socket.data.connection?.destroy(),
}

/**
 * The way into a sandbox: a port on loopback whose connections continue on a unix socket, chunk by chunk. What is said on them
 * is not looked at. Native sockets, because a pipe of `node:net` is as fast and holds half a megabyte more a connection.
 */
export class Splice {
  readonly #options: SpliceOptions
  readonly #listener: TCPSocketListener<End>
  readonly #connections = new Set<SpliceConnection>()
  /** Connections whose way on is not there yet. */
  readonly #dialling = new Set<SpliceSocket>()
  /** Where connections continue; until it is said they are refused. */
  #target: string | undefined
  #isFull = false

  constructor(options: SpliceOptions) {
    this.#options = options
    this.#listener = Bun.listen<End>({
      hostname: '127.0.0.1',
      port: 0,
      allowHalfOpen: true,
      socket: {
        ...pairedHandlers,
        open: (socket) => this.#accept(socket),
        close: (socket, error) => {
          this.#dialling.delete(socket)
          pairedHandlers.close(socket, error)
        },
      },
    })
  }

  get port(): number {
    return this.#listener.port
  }

  get connections(): number {
    return this.#connections.size + this.#dialling.size
  }

  /** Says where connections continue from now on. */
  open(unixSocket: string): void {
    this.#target = unixSocket
  }

  /** Cuts every connection; new ones are taken. */
  sever(): void {
    for (const connection of this.#connections) connection.destroy()
    for (const socket of this.#dialling) socket.terminate()
  }

  /** Takes no more connections and cuts those there are. */
  close(): void {
    this.#target = undefined
    this.#listener.stop(true)
    this.sever()
  }

  #accept(socket: SpliceSocket): void {
    socket.data = createEnd()
    const target = this.#target
    const isFull = this.connections >= this.#options.maxConnections
    if (isFull && !this.#isFull) this.#options.onFull?.(this.connections)
    this.#isFull = isFull
    if (target === undefined || isFull) {
      socket.terminate()
      return
    }
    socket.setNoDelay(true)
    // Nothing is read before there is somewhere to write it.
    socket.pause()
    this.#dialling.add(socket)
    this.#dial(socket, target).catch(() => socket.terminate())
  }

  async #dial(socket: SpliceSocket, target: string): Promise<void> {
    const onward = await Bun.connect<End>({
      unix: target,
      allowHalfOpen: true,
      data: createEnd(),
      socket: pairedHandlers,
    })
    if (!this.#dialling.delete(socket)) {
      onward.terminate()
      return
    }
    const connection = new SpliceConnection([socket, onward], () => this.#connections.delete(connection))
    this.#connections.add(connection)
    socket.resume()
  }
}
