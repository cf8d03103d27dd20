import type { Socket } from 'bun'

/** Buffered bytes at which the sender must pause. */
const MAX_HELD_BYTES = 256 * 1024

/** The part of a socket that is used here. */
export type PeerSocket = Pick<Socket, 'write' | 'shutdown' | 'end' | 'pause' | 'resume' | 'terminate'>

/** Writes to a socket and buffers what the kernel does not accept yet. */
export class SocketWriter {
  readonly #socket: PeerSocket
  /** Called when the buffer is below its limit again. */
  readonly #onWritable: () => void
  #held: Uint8Array[] = []
  #heldBytes = 0
  #ending: 'no' | 'after_held' | 'done' = 'no'

  constructor(socket: PeerSocket, onWritable: () => void) {
    this.#socket = socket
    this.#onWritable = onWritable
  }

  get isFull(): boolean {
    return this.#heldBytes >= MAX_HELD_BYTES
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
    this.#held.push(Uint8Array.from(bytes.subarray(written)))
    this.#heldBytes += bytes.length - written
  }

  /** Sends FIN after all buffered bytes. */
  end(): void {
    if (this.#ending !== 'no') return
    this.#ending = 'after_held'
    this.#finish()
  }

  /** The kernel accepts bytes again. */
  drained(): void {
    const wasFull = this.isFull
    for (let head = this.#held[0]; head !== undefined; head = this.#held[0]) {
      const written = Math.max(0, this.#socket.write(head))
      this.#heldBytes -= written
      if (written < head.length) {
        this.#held[0] = head.subarray(written)
        break
      }
      this.#held.shift()
    }
    this.#finish()
    if (wasFull && !this.isFull) this.#onWritable()
  }

  #finish(): void {
    if (this.#ending !== 'after_held' || this.#held.length > 0) return
    this.#ending = 'done'
    this.#socket.shutdown()
  }
}
