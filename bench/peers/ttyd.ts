import { findFreePort, spawnServer } from './spawned.ts'
import type { Peer, Service } from './stream.ts'
import { openWebSocketStream } from './web-socket-stream.ts'

/** ttyd's message types are characters: output from the server, input to it. */
const TYPE_DATA = 0x30

/** ttyd: one terminal per connection. */
export const ttyd: Peer = {
  name: 'ttyd',
  problem: Bun.which('ttyd') === null ? 'not on PATH (Debian 12 has no package)' : undefined,
  modes: ['pty'],
  serve: async (argv): Promise<Service> => {
    const port = findFreePort()
    const server = await spawnServer(['ttyd', '-W', '-i', '127.0.0.1', '-p', String(port), ...argv], port)
    const connectVia = (through: number) =>
      openWebSocketStream({
        url: `ws://127.0.0.1:${through}/ws`,
        protocols: ['tty'],
        greeting: new Uint8Array(Buffer.from(JSON.stringify({ AuthToken: '', columns: 80, rows: 24 }))),
        unwrap: (message) => (message[0] === TYPE_DATA ? message.subarray(1) : undefined),
        wrap: (bytes) => new Uint8Array(Buffer.concat([new Uint8Array([TYPE_DATA]), bytes])),
      })
    return {
      pid: server.pid,
      port,
      connect: () => connectVia(port),
      connectVia,
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    }
  },
}
