import type { Stream } from './stream.ts'

/** How a server wraps bytes in messages. */
export interface Wrapping {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly protocols?: readonly string[]
  /** The first message of the client. */
  readonly greeting?: Uint8Array<ArrayBuffer> | string
  /** The output in a message, `undefined` when it has none. */
  readonly unwrap: (message: Uint8Array) => Uint8Array | undefined
  /** The output in a text message; absent: there is none. */
  readonly unwrapText?: (text: string) => Uint8Array | undefined
  readonly wrap: (bytes: Uint8Array) => Uint8Array<ArrayBuffer> | string
  /** The exit code in a text message. */
  readonly exitOf?: (text: string) => number | undefined
}

/** Bun's constructor accepts headers; the DOM type does not declare them. */
const HeaderWebSocket = WebSocket as unknown as new (
  url: string,
  options: { headers: Readonly<Record<string, string>>; protocols: readonly string[] },
) => WebSocket

/** Opens a process behind a WebSocket. Every WebSocket server is measured with this client. */
export async function openWebSocketStream(wrapping: Wrapping): Promise<Stream> {
  const { url, headers = {}, protocols = [], greeting, unwrap, unwrapText, wrap, exitOf } = wrapping
  const socket = new HeaderWebSocket(url, { headers, protocols })
  socket.binaryType = 'arraybuffer'
  const opened = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<number | undefined>()
  let exit: number | undefined
  const stream: Stream = {
    onData: () => {},
    write: (bytes) => socket.send(wrap(bytes)),
    ended: ended.promise,
    close: () => socket.close(),
  }
  socket.addEventListener('open', () => {
    if (greeting !== undefined) socket.send(greeting)
    opened.resolve()
  })
  socket.addEventListener('message', ({ data }: MessageEvent<ArrayBuffer | string>) => {
    if (typeof data === 'string') exit = exitOf?.(data) ?? exit
    const output = typeof data === 'string' ? unwrapText?.(data) : unwrap(new Uint8Array(data))
    if (output !== undefined) stream.onData(output)
  })
  socket.addEventListener('close', ({ code, reason }) => {
    opened.reject(new Error(`Cannot connect to ${url}: closed with ${code} "${reason}"`))
    ended.resolve(exit)
  })
  await opened.promise
  return stream
}
