import { connect, type Socket } from 'node:net'

/** The head of an HTTP message and the bytes after it. */
export interface Head {
  readonly lines: readonly string[]
  readonly rest: Buffer
}

const MAX_HEAD_BYTES = 64 * 1024

/** Reads up to the empty line and leaves the socket paused; rejects when there is none. */
export function readHead(socket: Socket): Promise<Head> {
  const { promise, resolve, reject } = Promise.withResolvers<Head>()
  let bytes = Buffer.alloc(0)
  const take = (chunk: Buffer): void => {
    bytes = Buffer.concat([bytes, chunk])
    const end = bytes.indexOf('\r\n\r\n')
    if (end < 0 && bytes.length <= MAX_HEAD_BYTES) return
    socket.off('data', take)
    socket.pause()
    if (end < 0) reject(new Error('the head is too long'))
    else
      resolve({
        lines: bytes.subarray(0, end).toString('latin1').split('\r\n'),
        rest: bytes.subarray(end + 4),
      })
  }
  socket.on('data', take)
  socket.once('end', () => reject(new Error('no head')))
  socket.once('close', () => reject(new Error('no head')))
  return promise
}

/** Opens a connection; rejects when nothing listens. */
export function dial(hostname: string, port: number): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const socket = connect({ host: hostname, port, allowHalfOpen: true })
  socket.once('connect', () => resolve(socket))
  socket.once('error', reject)
  return promise
}

/** Forwards bytes in both directions until each ends. */
export function couple(a: Socket, b: Socket): void {
  for (const [one, other] of [
    [a, b],
    [b, a],
  ] as const) {
    one.on('error', () => other.destroy())
    one.on('close', () => other.destroySoon())
    one.pipe(other)
  }
}
