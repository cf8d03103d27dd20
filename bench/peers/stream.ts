/** A remote process, over any transport. */
export interface Stream {
  write(bytes: Uint8Array): void
  /** Set by the measurement; called with output as it arrives. */
  onData: (bytes: Uint8Array) => void
  /** Settles at the end of the output, with the exit code if the peer has one. */
  readonly ended: Promise<number | undefined>
  close(): void
}

/** A running peer that starts processes. */
export interface Service extends AsyncDisposable {
  /** Opens a connection with a new process. */
  readonly connect: () => Promise<Stream>
  /** The server's process, for memory. */
  readonly pid: number
  /** Port to put a proxy in front of. */
  readonly port: number
  /** Connects through the proxy on this port. */
  readonly connectVia: (port: number) => Promise<Stream>
}

export type Mode = 'pipe' | 'pty'

/** A program that serves a command; `serve` starts it for one command. */
export interface Peer {
  readonly name: string
  /** Why it cannot run here. */
  readonly problem: string | undefined
  readonly modes: readonly Mode[]
  /** `files` are those that the command names; a peer with a file system of its own copies them. */
  readonly serve: (
    argv: readonly [string, ...string[]],
    mode: Mode,
    files?: readonly string[],
  ) => Promise<Service>
}

/** Waits for `bytes` more bytes on a stream and returns them. */
export function collect(stream: Stream, bytes: number): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
  const chunks: Uint8Array[] = []
  let received = 0
  stream.onData = (chunk) => {
    chunks.push(chunk)
    received += chunk.byteLength
    if (received >= bytes) resolve(Buffer.concat(chunks))
  }
  void stream.ended.then(() => reject(new Error(`Output ended after ${received} of ${bytes} bytes`)))
  return promise
}

/** Waits until the output holds `text`. */
export function awaitText(stream: Stream, text: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let tail = ''
  stream.onData = (chunk) => {
    tail = (tail + Buffer.from(chunk).toString('latin1')).slice(-4096 - chunk.byteLength)
    if (tail.includes(text)) resolve()
  }
  void stream.ended.then(() => reject(new Error(`Output ended before "${text}"`)))
  return promise
}
