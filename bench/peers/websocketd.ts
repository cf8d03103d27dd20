import { findFreePort, spawnServer } from './spawned.ts'
import type { Peer, Service } from './stream.ts'
import { openWebSocketStream } from './web-socket-stream.ts'

/** websocketd in binary mode: one process per connection, bytes unchanged. */
export const websocketd: Peer = {
  name: 'websocketd',
  get problem() {
    return Bun.which('websocketd') === null ? 'not installed (apt-get install websocketd)' : undefined
  },
  modes: ['pipe'],
  serve: async (argv): Promise<Service> => {
    const port = findFreePort()
    const server = await spawnServer(
      ['websocketd', '--binary', '--address=127.0.0.1', `--port=${port}`, ...argv],
      port,
    )
    const connectVia = (through: number) =>
      openWebSocketStream({
        url: `ws://127.0.0.1:${through}/`,
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
  },
}
