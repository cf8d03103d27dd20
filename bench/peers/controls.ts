import { join } from 'node:path'
import { findFreePort, spawnServer } from './spawned.ts'
import type { Service } from './stream.ts'
import { openWebSocketStream } from './web-socket-stream.ts'

const PROGRAM = join(import.meta.dir, '../programs/web-socket-server.ts')

/** A bare Bun WebSocket server on `path`: the runtime without our code. */
export async function serveBareWebSocket(path: string): Promise<Service> {
  const port = findFreePort()
  const server = await spawnServer([process.execPath, PROGRAM, String(port)], port)
  const connectVia = (through: number) =>
    openWebSocketStream({
      url: `ws://127.0.0.1:${through}${path}`,
      unwrap: (message) => message,
      wrap: (bytes) => new Uint8Array(bytes),
    })
  return {
    pid: server.pid,
    port,
    connect: () => connectVia(port),
    connectVia,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
