import { pack, STREAM_STDERR, STREAM_STDOUT } from '@sandwire/protocol/plain'
import type { ServerWebSocket } from 'bun'

/** Larger than any flood or message of the tests. */
const MAX_BUFFER_BYTES = 128 * 1024 * 1024
const FLOOD_MESSAGE_BYTES = 64 * 1024
const EXIT_CODE = 5

function misbehave(socket: ServerWebSocket): void {
  socket.send(new Uint8Array([9, 1]))
  socket.send(new Uint8Array(0))
  socket.send('not json')
}

interface Order {
  readonly type?: unknown
  readonly bytes?: unknown
}

function parseOrder(text: string): Order {
  const value: unknown = JSON.parse(text)
  return typeof value === 'object' && value !== null ? value : {}
}

function obey(socket: ServerWebSocket, { type, bytes }: Order): void {
  if (type === 'drop') return socket.terminate()
  if (type === 'misbehave') return misbehave(socket)
  if (type === 'flood') {
    const chunk = pack(STREAM_STDOUT, new Uint8Array(FLOOD_MESSAGE_BYTES))
    for (let left = Number(bytes); left > 0; left -= FLOOD_MESSAGE_BYTES) socket.send(chunk)
    return
  }
  socket.send(pack(STREAM_STDERR, Buffer.from(`got ${String(type)}\n`)))
  if (type !== 'eof') return
  socket.send(JSON.stringify({ type: 'exit', code: EXIT_CODE }))
  socket.close(1000)
}

/** A minimal plain-dialect server for client tests: echoes input as stdout and reports control messages on stderr. */
export function openPlainServer() {
  const sockets = new Set<ServerWebSocket>()
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request, server) {
      if (request.headers.get('authorization') !== 'Bearer good')
        return new Response('who are you', { status: 401 })
      return server.upgrade(request) ? undefined : new Response('no upgrade', { status: 400 })
    },
    websocket: {
      backpressureLimit: MAX_BUFFER_BYTES,
      maxPayloadLength: MAX_BUFFER_BYTES,
      open: (socket) => void sockets.add(socket),
      message: (socket, message) => {
        if (typeof message === 'string') obey(socket, parseOrder(message))
        else socket.send(pack(STREAM_STDOUT, message))
      },
    },
  })
  return {
    url: `ws://127.0.0.1:${server.port}/`,
    /** Bytes not yet accepted by the kernel. */
    backpressure: () => Math.max(0, ...[...sockets].map((socket) => socket.getBufferedAmount())),
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}
