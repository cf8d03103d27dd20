import { type Dialect, dialectOf } from '@sandwire/protocol'

/** What a request says about becoming a WebSocket. */
export interface UpgradeHeaders {
  readonly dialect: Dialect
  /** It asks for a WebSocket; Bun checks version and key. */
  readonly isUpgrade: boolean
  /** A body would stand between the handshake and the first frame. */
  readonly hasBody: boolean
}

function listOf(headers: Headers, name: string): string[] {
  return (headers.get(name) ?? '').split(',').map((item) => item.trim())
}

/** Reads the upgrade headers where RFC 6455, section 4.2.1, asks for more than Bun does. */
export function readUpgrade({ method, headers }: Request): UpgradeHeaders {
  const asksForUpgrade = listOf(headers, 'connection').some((item) => item.toLowerCase() === 'upgrade')
  const asksForWebSocket = headers.get('upgrade')?.toLowerCase() === 'websocket'
  return {
    dialect: dialectOf(headers.get('sec-websocket-protocol')),
    isUpgrade: method === 'GET' && asksForUpgrade && asksForWebSocket,
    hasBody: headers.has('transfer-encoding') || Number(headers.get('content-length') ?? 0) !== 0,
  }
}
