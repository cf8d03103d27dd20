import type { Server } from 'node:net'
import { openForward } from '@sandwire/socket-forward'
import type { Log } from './log.ts'

/** Port of the proxy for processes; 3128 is the customary one. */
export const PROXY_PORT = 3128
/** Loopback: only processes of this sandbox can connect. */
const HOST = '127.0.0.1'

const PROXY_URL = `http://${HOST}:${PROXY_PORT}`

/** Variables that name the proxy; programs read one spelling or the other. */
export const PROXY_ENV: Readonly<Record<string, string>> = {
  HTTP_PROXY: PROXY_URL,
  HTTPS_PROXY: PROXY_URL,
  http_proxy: PROXY_URL,
  https_proxy: PROXY_URL,
  NO_PROXY: 'localhost,127.0.0.1',
  no_proxy: 'localhost,127.0.0.1',
}

const MAX_CONNECTIONS = 256

/** A loopback port, and the unix socket that its connections are forwarded to. */
export interface PortRoute {
  readonly port: number
  readonly socketPath: string
  /** What is behind the socket, for the log. */
  readonly name: 'proxy' | 'gateway'
}

/** Forwards a loopback port. Undefined when the port is not available. */
export async function forwardPort(
  { port, socketPath, name }: PortRoute,
  log: Log,
): Promise<Server | undefined> {
  try {
    return await openForward({
      listen: { port, host: HOST },
      target: () => socketPath,
      maxConnections: MAX_CONNECTIONS,
    })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'failed'
    log.warn(`${name}_unavailable`, { code, message: `Cannot listen on port ${port}` })
    return undefined
  }
}
