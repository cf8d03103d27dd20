import type { Socket } from 'bun'

/** Unread bytes at which reading pauses; the kernel then holds back the peer. */
const MAX_UNREAD_BYTES = 256 * 1024

/** How a connection ended. */
export type TcpEnd =
  /** The peer sent FIN. */
  | 'fin'
  /** The peer or an intermediary sent RST. */
  | 'reset'
  /** This side closed before the peer did. */
  | 'local'

export interface RawTcpOptions {
  readonly port: number
  /** Default 127.0.0.1. */
  readonly host?: string
}

/** A TCP connection whose writes, reads and close the test controls. */
export class RawTcp implements AsyncDisposable {
  /** Resolves when the connection first ends; never rejects. */
  readonly ended: Promise<TcpEnd>
  #socket: Socket | undefined
  readonly #ended = Promise.withResolvers<TcpEnd>()
  /** Received and not yet read, in order. */
  #unread: Uint8Array[] = []
  #unreadBytes = 0
  /** Not yet accepted by the kernel, in order. */
  readonly #unsent: {
    bytes: Uint8Array
    readonly done: () => void
    readonly failed: (error: Error) => void
  }[] = []
  #isReading = true
  #hasEnded = false
  /** Wakes the pending reader. */
  #wake = Promise.withResolvers<void>()

  private constructor() {
    this.ended = this.#ended.promise
  }

  static async open({ port, host = '127.0.0.1' }: RawTcpOptions): Promise<RawTcp> {
    const tcp = new RawTcp()
    tcp.#socket = await Bun.connect({
      hostname: host,
      port,
      allowHalfOpen: true,
      socket: {
        open: (socket) => void socket.setNoDelay(true),
        data: (_, bytes) => tcp.#receive(bytes),
        drain: () => tcp.#flush(),
        end: () => tcp.#end('fin'),
        // Bun emits no `end` event when this side sent its FIN first.
        close: (_, error) => {
          tcp.#end(error === undefined || error === null ? 'fin' : 'reset')
          tcp.#failUnsent()
        },
        error: () => tcp.#end('reset'),
      },
    })
    return tcp
  }

  /** Bytes received and not yet read. */
  get unreadBytes(): number {
    return this.#unreadBytes
  }

  /** Sends bytes. Resolves when the kernel has accepted all of them; rejects when the connection ends before. */
  write(bytes: Uint8Array | string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#unsent.push({ bytes: Buffer.from(bytes), done: resolve, failed: reject })
    this.#flush()
    return promise
  }

  /** The bytes received since the last call, at least one; `undefined` once the connection has ended. */
  async read(): Promise<Uint8Array | undefined> {
    while (this.#unreadBytes === 0) {
      if (this.#hasEnded) return undefined
      await this.#wake.promise
    }
    const bytes = Buffer.concat(this.#unread)
    this.#unread = []
    this.#unreadBytes = 0
    if (this.#isReading) this.#socket?.resume()
    return bytes
  }

  /** Stops reading, so that the kernel's buffers fill and stall the peer. */
  pause(): void {
    this.#isReading = false
    this.#socket?.pause()
  }

  resume(): void {
    this.#isReading = true
    this.#socket?.resume()
  }

  /** Closes the sending direction (FIN); receiving continues. */
  endWriting(): void {
    this.#socket?.shutdown()
  }

  /** Aborts the connection (RST). */
  reset(): void {
    this.#end('local')
    this.#socket?.terminate()
  }

  /** Closes both directions; the kernel sends RST instead when received bytes are unread. */
  close(): void {
    this.#end('local')
    this.#socket?.end()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close()
  }

  #receive(bytes: Uint8Array): void {
    this.#unread.push(new Uint8Array(bytes))
    this.#unreadBytes += bytes.length
    if (this.#unreadBytes >= MAX_UNREAD_BYTES) this.#socket?.pause()
    this.#wakeReader()
  }

  #flush(): void {
    for (let head = this.#unsent[0]; head !== undefined; head = this.#unsent[0]) {
      const written = this.#socket?.write(head.bytes) ?? -1
      if (written < 0) return this.#failUnsent()
      head.bytes = head.bytes.subarray(written)
      if (head.bytes.length > 0) return
      this.#unsent.shift()
      head.done()
    }
  }

  #failUnsent(): void {
    for (const { failed } of this.#unsent.splice(0)) failed(new Error('Cannot send bytes: connection ended'))
  }

  #end(how: TcpEnd): void {
    this.#ended.resolve(how)
    this.#hasEnded = true
    this.#wakeReader()
  }

  #wakeReader(): void {
    this.#wake.resolve()
    this.#wake = Promise.withResolvers<void>()
  }
}

/** Opens a connection; rejects when it is refused. */
export function openRawTcp(options: RawTcpOptions): Promise<RawTcp> {
  return RawTcp.open(options)
}
