import { withTimeout } from '@sandwire/async'
import { unreachable } from '../upstream.ts'
import { type SpritesSettings, problemOf } from './api.ts'
import type { ByteDuplex } from './byte-duplex.ts'
import { UpgradeRefused, WebSocketClient, type WebSocketDependencies } from './websocket-client.ts'

/** Until the connection into the sprite is open; waking a cold sprite takes seconds. */
const OPEN_MS = 30_000

/** Where the workspace service listens in the sprite. */
export interface ServiceTarget {
  readonly host: string
  readonly port: number
}

export interface TunnelDependencies extends WebSocketDependencies {
  /** Connects to the API, with TLS if it is an https origin. */
  readonly connect: (address: { hostname: string; port: number }, isSecure: boolean) => ByteDuplex
}

/** Opens a WebSocket of the API. Throws `SpritesError`, or `sandbox_unreachable`. */
async function openApiSocket(
  { baseUrl, token }: SpritesSettings,
  target: string,
  deps: TunnelDependencies,
): Promise<WebSocketClient> {
  const { hostname, port, host, protocol } = new URL(baseUrl)
  const isSecure = protocol === 'https:'
  const address = { hostname, port: port === '' ? (isSecure ? 443 : 80) : Number(port) }
  const duplex = deps.connect(address, isSecure)
  try {
    const headers = { authorization: `Bearer ${token}` }
    const opening = WebSocketClient.open(duplex, { host, target, headers }, deps)
    return await withTimeout(opening, OPEN_MS, unreachable)
  } catch (error) {
    duplex.close()
    throw error instanceof UpgradeRefused ? problemOf(error.status) : unreachable(error)
  }
}

function isConnected(text: string): boolean {
  try {
    const message: unknown = JSON.parse(text)
    return typeof message === 'object' && message !== null && Reflect.get(message, 'status') === 'connected'
  } catch {
    // Not JSON.
    return false
  }
}

/** Bytes in one message; more are split. */
const MAX_PART_BYTES = 256 * 1024

/**
 * Opens a TCP connection to the workspace service on the sprite's loopback, through the API's proxy. The target is fixed by the
 * configuration. Reading slows the sprite down: nothing is read ahead but what is in one message.
 */
export async function openTunnel(
  settings: SpritesSettings,
  sprite: string,
  target: ServiceTarget,
  deps: TunnelDependencies,
): Promise<ByteDuplex> {
  const socket = await openApiSocket(settings, `/v1/sprites/${sprite}/proxy`, deps)
  try {
    await socket.send(JSON.stringify({ host: target.host, port: target.port }))
    const answer = await withTimeout(socket.read(), OPEN_MS, unreachable)
    if (answer?.kind !== 'text' || !isConnected(answer.text)) throw unreachable()
  } catch (error) {
    socket.close()
    throw unreachable(error)
  }
  return {
    async read() {
      for (;;) {
        const message = await socket.read()
        // Only binary messages carry bytes.
        if (message?.kind !== 'text') return message?.bytes
      }
    },
    async write(bytes) {
      for (let at = 0; at < bytes.length; at += MAX_PART_BYTES)
        await socket.send(bytes.subarray(at, at + MAX_PART_BYTES))
    },
    close: () => socket.close(),
  }
}
