import { COMPAT_SUBPROTOCOL } from '@sandwire/internal-api'
import { type Dialect, dialectOf, SandwireError, SUBPROTOCOL } from '@sandwire/protocol'

/** What a request's headers say about a WebSocket upgrade. */
export interface UpgradeHeaders {
  readonly dialect: Dialect
  /** The request is a WebSocket upgrade. */
  readonly isUpgrade: boolean
  /** The handshake is valid by RFC 6455, section 4.1, so that it can be answered with a 101. */
  readonly isWellFormed: boolean
}

function listOf(headers: Headers, name: string): string[] {
  return (headers.get(name) ?? '').split(',').map((item) => item.trim())
}

/** The subprotocols that an upgrade offers. */
export function offeredSubprotocols(headers: Headers): readonly string[] {
  return listOf(headers, 'sec-websocket-protocol').filter((name) => name !== '')
}

export function readUpgrade({ method, headers }: Request): UpgradeHeaders {
  const isConnectionUpgrade = listOf(headers, 'connection').some((item) => item.toLowerCase() === 'upgrade')
  const hasBody = headers.has('transfer-encoding') || Number(headers.get('content-length') ?? 0) !== 0
  return {
    dialect: dialectOf(headers.get('sec-websocket-protocol')),
    isUpgrade:
      method === 'GET' && isConnectionUpgrade && headers.get('upgrade')?.toLowerCase() === 'websocket',
    isWellFormed:
      !hasBody &&
      headers.get('sec-websocket-version') === '13' &&
      /^[A-Za-z0-9+/]{22}==$/.test(headers.get('sec-websocket-key') ?? ''),
  }
}

/** Reads the upgrade headers; throws `bad_request` for a malformed handshake, before it can start anything. */
export function checkHandshake(request: Request): UpgradeHeaders {
  const upgrade = readUpgrade(request)
  if (upgrade.isUpgrade && !upgrade.isWellFormed)
    throw new SandwireError('bad_request', 'Cannot upgrade: the WebSocket handshake is malformed')
  return upgrade
}

/** A terminal for a client that offers no dialect of the protocol: it gets text to draw, and sends what is typed. */
export function isTextTerminal({ url, headers }: Request): boolean {
  if (!new URL(url).pathname.startsWith('/terminal/')) return false
  const offers = offeredSubprotocols(headers)
  return offers.length === 0 || (offers.includes(COMPAT_SUBPROTOCOL) && !offers.includes(SUBPROTOCOL))
}

/** Routes that become WebSockets. */
export function isWebSocketPath(pathname: string): boolean {
  return pathname === '/attach' || pathname.startsWith('/terminal/') || pathname.startsWith('/ws/')
}
