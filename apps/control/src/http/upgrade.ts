import { type Dialect, dialectOf } from '@sandwire/protocol'

/** What a request says about becoming a WebSocket. */
export interface UpgradeHeaders {
  readonly dialect: Dialect
  /** It asks for a WebSocket and nothing else. */
  readonly isUpgrade: boolean
  /** It asks in the one way RFC 6455, section 4.1, allows, so that it can be answered with a 101. */
  readonly isWellFormed: boolean
}

/** Whether the route speaks an envelope of existing front ends, and none of our dialects. */
export function isEnvelopePath(pathname: string): boolean {
  return pathname.startsWith('/ws/')
}

function listOf(headers: Headers, name: string): string[] {
  return (headers.get(name) ?? '').split(',').map((item) => item.trim())
}

/** Reads the upgrade headers; a handshake is judged here, before it can start anything. */
export function readUpgrade({ method, headers }: Request): UpgradeHeaders {
  const asksForUpgrade = listOf(headers, 'connection').some((item) => item.toLowerCase() === 'upgrade')
  const hasBody = headers.has('transfer-encoding') || Number(headers.get('content-length') ?? 0) !== 0
  return {
    dialect: dialectOf(headers.get('sec-websocket-protocol')),
    isUpgrade: method === 'GET' && asksForUpgrade && headers.get('upgrade')?.toLowerCase() === 'websocket',
    isWellFormed:
      !hasBody &&
      headers.get('sec-websocket-version') === '13' &&
      /^[A-Za-z0-9+/]{22}==$/.test(headers.get('sec-websocket-key') ?? ''),
  }
}
