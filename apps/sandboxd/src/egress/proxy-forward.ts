import { connect, createServer, type Server, type Socket } from 'node:net'
import type { Log } from '../log.ts'

/** Connections at a time; each costs two descriptors and two buffers. */
const MAX_CONNECTIONS = 256

/** Joins two connections: bytes both ways with back-pressure, and each end's end told to the other. */
function splice(a: Socket, b: Socket): void {
  a.pipe(b)
  b.pipe(a)
  for (const [socket, other] of [
    [a, b],
    [b, a],
  ] as const) {
    // An error closes the socket as well; whatever the other end was waiting for will not come.
    socket.on('error', () => other.destroy())
    socket.on('close', () => {
      if (!other.writableEnded) other.destroy()
    })
  }
}

/** Where to listen, and what to join connections to. */
export interface ForwardRoute {
  readonly hostname: string
  readonly port: number
  readonly socketPath: string
}

/** Listens and joins every connection to a new one on a unix socket. Undefined when the port cannot be had. */
export function openForward(
  { hostname, port, socketPath }: ForwardRoute,
  log: Log,
): Promise<Server | undefined> {
  const server = createServer({ allowHalfOpen: true }, (client) => {
    splice(client, connect({ path: socketPath, allowHalfOpen: true }))
  })
  server.maxConnections = MAX_CONNECTIONS
  const { promise, resolve } = Promise.withResolvers<Server | undefined>()
  server.once('listening', () => resolve(server))
  server.on('error', (error: Error & { code?: string }) => {
    log.warn('proxy_unavailable', { code: error.code ?? 'failed', message: `Cannot listen on port ${port}` })
    resolve(undefined)
  })
  server.listen(port, hostname)
  return promise
}
