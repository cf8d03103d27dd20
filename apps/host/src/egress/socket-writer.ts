import type { Socket } from 'bun'

/** The part of a socket that is used here. */
export type PeerSocket = Pick<Socket, 'write' | 'shutdown' | 'end' | 'pause' | 'resume' | 'terminate'>

export interface SocketWriterOptions {
  /** Called when nothing is buffered any more. */
  readonly onWritable: () => void
  /** Called when the number of buffered bytes changes. */
  readonly onHeld: (delta: number) => void
}

/** Writes to a socket and buffers what the kernel does not accept yet. The sender must pause while anything is buffered. */
export class SocketWriter {
  readonly #socket: PeerSocket
  readonly #options: SocketWriterOptions
  #held: Uint8Array[] = []
  #heldBytes = 0
  #ending: 'no' | 'after_held' | 'done' = 'no'

  constructor(socket: PeerSocket, options: SocketWriterOptions) {
    this.#socket = socket
    this.#options = options
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  /** True when the last byte and FIN were sent. */
  get isDone(): boolean {
    return this.#ending === 'done'
  }

  /** Copies bytes that must wait, because Bun reuses the buffer. */
  write(bytes: Uint8Array): void {
    if (this.#ending !== 'no' || bytes.length === 0) return
    const written = this.#held.length > 0 ? 0 : Math.max(0, this.#socket.write(bytes))
    if (written === bytes.length) return
    this.#held.push(new Uint8Array(bytes.subarray(written)))
    this.#change(bytes.length - written)
  }

  /** Sends FIN after all buffered bytes. */
  end(): void {
    if (this.#ending !== 'no') return
    this.#ending = 'after_held'
    this.#finish()
  }

  /** The kernel accepts bytes again. */
  drained(): void {
    const before = this.#heldBytes
    let sent = 0
    for (let head = this.#held[0]; head !== undefined; head = this.#held[0]) {
      const written = Math.max(0, this.#socket.write(head))
      sent += written
      if (written < head.length) {
        this.#held[0] = head.subarray(written)
        break
      }
      this.#held.shift()
    }
    this.#change(-sent)
    this.#finish()
    if (before > 0 && this.#heldBytes === 0) this.#options.onWritable()
  }

  /** Drops what is buffered, because the connection was terminated. */
  discard(): void {
    this.#ending = 'done'
    this.#held = []
    this.#change(-this.#heldBytes)
  }

  #change(delta: number): void {
    if (delta === 0) return
    this.#heldBytes += delta
    this.#options.onHeld(delta)
  }

  #finish(): void {
    if (this.#ending !== 'after_held' || this.#held.length > 0) return
    this.#ending = 'done'
    this.#socket.shutdown()
  }
}
