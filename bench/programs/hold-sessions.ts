// Opens sessions of `cat` without the subprotocol and holds them until it is killed: bun hold-sessions.ts URL COUNT.
// The authorization header is in AUTHORIZATION. Prints "ready" when all are open.

const [url = '', count = '0'] = process.argv.slice(2)

/** Upgrades at a time. */
const PARALLEL = 16

/** Bun's constructor accepts headers; the DOM type does not declare them. */
const HeaderWebSocket = WebSocket as unknown as new (
  url: string,
  options: { headers: Readonly<Record<string, string>> },
) => WebSocket

const sockets: WebSocket[] = []

async function open(): Promise<void> {
  const socket = new HeaderWebSocket(url, {
    headers: { authorization: process.env['AUTHORIZATION'] ?? '' },
  })
  const opened = Promise.withResolvers<void>()
  socket.addEventListener('open', () => opened.resolve())
  socket.addEventListener('close', ({ code }) => opened.reject(new Error(`closed with ${code}`)))
  await opened.promise
  sockets.push(socket)
}

async function openSome(from: number): Promise<void> {
  for (let index = from; index < Number(count); index += PARALLEL) await open()
}

await Promise.all(Array.from({ length: PARALLEL }, (_, from) => openSome(from)))
console.log('ready')
