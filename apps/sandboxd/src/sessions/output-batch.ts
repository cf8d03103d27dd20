import { concatBytes } from '@sandwire/bytes'
import type { OutputStream } from '@sandwire/protocol'

/** A batch this large goes out at once; it is a whole frame. */
const MAX_BATCH_BYTES = 64 * 1024
/** Joining chunks of this size would cost more than the frames it saves. */
const LARGE_CHUNK_BYTES = 16 * 1024

/**
 * Joins the small chunks a process writes in one turn of the event loop. The first one goes through at once, so an echo
 * is not delayed; what follows in the same turn goes out together at its end, so a flood is sent in large frames.
 */
export class OutputBatch {
  readonly #deliver: (stream: OutputStream, bytes: Uint8Array) => void
  readonly #chunks: Uint8Array[] = []
  #stream: OutputStream = 'stdout'
  #bytes = 0
  /** Runs at the end of the turn in which something was delivered. */
  #endOfTurn: NodeJS.Immediate | undefined

  constructor(deliver: (stream: OutputStream, bytes: Uint8Array) => void) {
    this.#deliver = deliver
  }

  add(stream: OutputStream, chunk: Uint8Array): void {
    if (this.#endOfTurn === undefined) {
      this.#endOfTurn = setImmediate(this.#turnEnded)
      this.#deliver(stream, chunk)
      return
    }
    if (chunk.byteLength >= LARGE_CHUNK_BYTES) {
      this.flush()
      this.#deliver(stream, chunk)
      return
    }
    if (stream !== this.#stream) this.flush()
    this.#stream = stream
    this.#chunks.push(chunk)
    this.#bytes += chunk.byteLength
    if (this.#bytes >= MAX_BATCH_BYTES) this.flush()
  }

  /** Delivers what waits. Nothing may follow a process's last byte, so its owner calls this before telling the end. */
  flush(): void {
    const [first] = this.#chunks
    if (first === undefined) return
    const bytes = this.#chunks.length === 1 ? first : concatBytes(this.#chunks)
    this.#chunks.length = 0
    this.#bytes = 0
    this.#deliver(this.#stream, bytes)
  }

  readonly #turnEnded = (): void => {
    this.#endOfTurn = this.#bytes > 0 ? setImmediate(this.#turnEnded) : undefined
    this.flush()
  }
}
