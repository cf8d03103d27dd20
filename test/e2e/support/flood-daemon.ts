// Stands in for sandboxd: the first byte of a connection says what it does. `f` floods, `s` reads nothing, `e` echoes.

import { createServer, type Socket } from 'node:net'

/** Bytes that tell where in the flood they are, over and over. */
export const FLOOD_CHUNK: Uint8Array = Uint8Array.from(
  { length: 1024 * 1024 },
  (_, at) => (at * 31 + (at >> 9)) & 255,
)

function flood(socket: Socket): void {
  const more = (): void => {
    while (socket.write(FLOOD_CHUNK));
  }
  socket.on('drain', more)
  more()
}

function serve(socket: Socket): void {
  socket.on('error', () => undefined)
  socket.once('data', (first: Buffer) => {
    switch (first.toString('latin1', 0, 1)) {
      case 'f':
        flood(socket)
        return
      case 's':
        socket.pause()
        return
      default:
        socket.write(first)
        socket.pipe(socket)
    }
  })
}

if (import.meta.main) {
  const listen = process.argv[process.argv.indexOf('--listen') + 1] ?? ''
  createServer({ allowHalfOpen: true }, serve).listen(listen.replace('unix:', ''), () =>
    process.stdout.write('{"type":"ready"}\n'),
  )
}
