import { type Dialect, dialectOf } from '@sandwire/protocol'

/** The upgrade headers of a request. */
export interface UpgradeHeaders {
  readonly dialect: Dialect
  /** Requests a WebSocket; Bun checks version and key. */
  readonly isUpgrade: boolean
  /** A body would precede the first frame. */
  readonly hasBody: boolean
}

function listOf(headers: Headers, name: string): string[] {
  return (headers.get(name) ?? '').split(',').map((item) => item.trim())
}

/** Reads the upgrade headers as RFC 6455, section 4.2.1, requires; Bun checks less. */
export function readUpgrade({ method, headers }: Request): UpgradeHeaders {
  const hasUpgrade = listOf(headers, 'connection').some((item) => item.toLowerCase() === 'upgrade')
  const isWebSocket = headers.get('upgrade')?.toLowerCase() === 'websocket'
  return {
    dialect: dialectOf(headers.get('sec-websocket-protocol')),
    isUpgrade: method === 'GET' && hasUpgrade && isWebSocket,
    hasBody: headers.has('transfer-encoding') || Number(headers.get('content-length') ?? 0) !== 0,
  }
}
