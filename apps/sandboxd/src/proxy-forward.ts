import { connect, createServer, type Server, type Socket } from 'node:net'
import type { Log } from './log.ts'

/** Port of the proxy for processes; 3128 is the customary one. */
export const PROXY_PORT = 3128
/** Loopback: only processes of this sandbox can connect. */
export const PROXY_HOST = '127.0.0.1'

const PROXY_URL = `http://${PROXY_HOST}:${PROXY_PORT}`

/** Variables that name the proxy; programs read one spelling or the other. */
export const PROXY_ENV: Readonly<Record<string, string>> = {
  HTTP_PROXY: PROXY_URL,
  HTTPS_PROXY: PROXY_URL,
  http_proxy: PROXY_URL,
  https_proxy: PROXY_URL,
  NO_PROXY: 'localhost,127.0.0.1',
  no_proxy: 'localhost,127.0.0.1',
}

/** Connections at a time; each costs two descriptors and two buffers. */
const MAX_CONNECTIONS = 256

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

/** Listening address, and the unix socket that connections are forwarded to. */
export interface ForwardRoute {
  readonly hostname: string
  readonly port: number
  readonly socketPath: string
}

/** Forwards every connection to a new one on the unix socket. Undefined when the port is not available. */
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
