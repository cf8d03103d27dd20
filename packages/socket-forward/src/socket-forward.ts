import { connect, createServer, type ListenOptions, type Server, type Socket } from 'node:net'

/** Joins two connections: bytes both ways with back-pressure, half-closes included. */
function splice(a: Socket, b: Socket): void {
  a.pipe(b)
  b.pipe(a)
  for (const [socket, other] of [
    [a, b],
    [b, a],
  ] as const) {
    // An error closes the socket, and the other end would wait in vain.
    socket.on('error', () => other.destroy())
    socket.on('close', () => {
      if (!other.writableEnded) other.destroy()
    })
  }
}

export interface ForwardOptions {
  /** Where to listen: `host` and `port`, or the `path` of a unix socket. */
  readonly listen: ListenOptions
  /** The unix socket that connections are forwarded to; undefined: there is none, and they are closed. */
  readonly target: () => string | undefined
  /** Connections at a time; each costs two descriptors and two buffers. */
  readonly maxConnections: number
}

/** Forwards every connection to a new one on a unix socket, without looking at the bytes. Rejects when the address is not available. */
export function openForward({ listen, target, maxConnections }: ForwardOptions): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const path = target()
    if (path === undefined) client.destroy()
    else splice(client, connect({ path, allowHalfOpen: true }))
  })
  server.maxConnections = maxConnections
  const { promise, resolve, reject } = Promise.withResolvers<Server>()
  server.once('listening', () => resolve(server))
  server.on('error', reject)
  server.listen(listen)
  return promise
}
