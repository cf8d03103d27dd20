import { withTimeout } from '@sandwire/async'
import { unreachable } from '../upstream.ts'
import type { SpritesSettings } from './api.ts'
import { type ApiSocketDependencies, OPEN_MS, openApiSocket } from './api-socket.ts'
import type { ByteDuplex } from './byte-duplex.ts'

/** Where the workspace service listens in the sprite. */
export interface ServiceTarget {
  readonly host: string
  readonly port: number
}

export type TunnelDependencies = ApiSocketDependencies

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
  const socket = await openApiSocket(settings, { target: `/v1/sprites/${sprite}/proxy` }, deps)
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
