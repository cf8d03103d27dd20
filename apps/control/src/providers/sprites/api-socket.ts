import { withTimeout } from '@sandwire/async'
import { unreachable } from '../upstream.ts'
import { problemOf, type SpritesSettings } from './api.ts'
import type { ByteDuplex } from './byte-duplex.ts'
import { UpgradeRefused, WebSocketClient, type WebSocketDependencies } from './websocket-client.ts'

/** Until a WebSocket of the API is open, and until its first answer; waking a cold sprite takes seconds. */
export const OPEN_MS = 30_000

export interface ApiSocketDependencies extends WebSocketDependencies {
  /** Connects to the API, with TLS if it is an https origin. */
  readonly connect: (address: { hostname: string; port: number }, isSecure: boolean) => ByteDuplex
}

/** A WebSocket of the API to open. */
export interface ApiSocketRequest {
  /** Path and query; it may hold secrets, and is in no message. */
  readonly target: string
  readonly requestId?: string
}

/** Opens a WebSocket of the API. Throws `SpritesError`, or `sandbox_unreachable`; `refusalOf` may name another error for a status. */
export async function openApiSocket(
  { baseUrl, token }: SpritesSettings,
  { target, requestId }: ApiSocketRequest,
  deps: ApiSocketDependencies,
  refusalOf: (status: number) => Error = problemOf,
): Promise<WebSocketClient> {
  const { hostname, port, host, protocol } = new URL(baseUrl)
  const isSecure = protocol === 'https:'
  const address = { hostname, port: port === '' ? (isSecure ? 443 : 80) : Number(port) }
  const duplex = deps.connect(address, isSecure)
  try {
    const headers = {
      authorization: `Bearer ${token}`,
      ...(requestId !== undefined && { 'x-request-id': requestId }),
    }
    const opening = WebSocketClient.open(duplex, { host, target, headers }, deps)
    return await withTimeout(opening, OPEN_MS, unreachable)
  } catch (error) {
    duplex.close()
    throw error instanceof UpgradeRefused ? refusalOf(error.status) : unreachable(error)
  }
}
