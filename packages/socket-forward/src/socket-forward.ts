import { connect, createServer, type ListenOptions, type Server, type Socket } from 'node:net'

/** Joins two connections: bytes both ways with back-pressure, half-closes included. */
function splice(a: Socket, b: Socket): void {
  a.pipe(b)
  b.pipe(a)
  for (const [socket, other] of [
    [a, b],
    [b, a],
  ] as const) {
    // An error closes the socket, and the other end would wait in vain.
    socket.on('error', () => other.destroy())
    socket.on('close', () => {
      if (!other.writableEnded) other.destroy()
    })
  }
}

export interface ForwardOptions {
  /** Where to listen: `host` and `port`, or the `path` of a unix socket. */
  readonly listen: ListenOptions
  /** The unix socket that connections are forwarded to; undefined: there is none, and they are closed. */
  readonly target: () => string | undefined
  /** Connections at a time; each costs two descriptors and two buffers. */
  readonly maxConnections: number
  /** How long a connection waits for a target that is not there, such as a server that is being restarted; default: not at all. */
  readonly waitMs?: number
  /** Asked before each connection is forwarded; while false, it waits. */
  readonly mayForward?: () => boolean
}

/** Between two attempts to reach a target. */
const RETRY_MS = 200

/** A connection to the target; undefined when it is not there in time, or the client has gone. */
async function dial({ target, waitMs = 0 }: ForwardOptions, client: Socket): Promise<Socket | undefined> {
  for (let waitedMs = 0; !client.destroyed; waitedMs += RETRY_MS) {
    const path = target()
    const socket = path === undefined ? undefined : await open(path)
    if (socket !== undefined) return socket
    if (waitedMs >= waitMs) return undefined
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
  return undefined
}

/** An open connection; undefined when nothing listens. */
function open(path: string): Promise<Socket | undefined> {
  const { promise, resolve } = Promise.withResolvers<Socket | undefined>()
  const socket = connect({ path, allowHalfOpen: true })
  const failed = (): void => resolve(undefined)
  socket.once('error', failed)
  socket.once('connect', () => {
    socket.off('error', failed)
    resolve(socket)
  })
  return promise
}

/** Forwards a connection when it is its turn and as soon as the target is there. */
async function forwardLater(options: ForwardOptions, client: Socket): Promise<void> {
  const gone = (): void => void client.destroy()
  client.on('error', gone)
  while (!client.destroyed && options.mayForward?.() === false)
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  const socket = await dial(options, client)
  client.off('error', gone)
  if (socket === undefined || client.destroyed) {
    client.destroy()
    socket?.destroy()
  } else splice(client, socket)
}

/** Forwards every connection to a new one on a unix socket, without looking at the bytes. Rejects when the address is not available. */
export function openForward(options: ForwardOptions): Promise<Server> {
  const { listen, target, maxConnections, waitMs, mayForward } = options
  const isLater = waitMs !== undefined || mayForward !== undefined
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: isLater }, (client) => {
    if (isLater) return void forwardLater(options, client)
    const path = target()
    if (path === undefined) client.destroy()
    else splice(client, connect({ path, allowHalfOpen: true }))
  })
  server.maxConnections = maxConnections
  const { promise, resolve, reject } = Promise.withResolvers<Server>()
  server.once('listening', () => resolve(server))
  server.on('error', reject)
  server.listen(listen)
  return promise
}
