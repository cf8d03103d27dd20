// A Bun WebSocket server without any of our code, as a control: `/echo` sends every message back,
// `/flood?bytes=N` sends N bytes in frames of 64 KiB, as fast as the socket takes them.

const FRAME = new Uint8Array(64 * 1024)

interface Flood {
  left: number
}

const server = Bun.serve<Flood>({
  hostname: '127.0.0.1',
  port: Number(process.argv[2]),
  fetch: (request, self) => {
    const left = Number(new URL(request.url).searchParams.get('bytes') ?? 0)
    return self.upgrade(request, { data: { left } }) ? undefined : new Response('', { status: 400 })
  },
  websocket: {
    perMessageDeflate: false,
    open: (socket) => send(socket),
    message: (socket, message) => void socket.send(message),
    drain: (socket) => send(socket),
  },
})

function send(socket: Bun.ServerWebSocket<Flood>): void {
  while (socket.data.left > 0) {
    const frame = FRAME.subarray(0, Math.min(FRAME.length, socket.data.left))
    socket.data.left -= frame.length
    if (socket.sendBinary(frame) <= 0) return
  }
}

process.on('SIGTERM', () => void server.stop(true).then(() => process.exit(0)))
