import type { OutputStream } from '@sandwire/protocol'

/** A batch of this size fills a frame and is delivered at once. */
const MAX_BATCH_BYTES = 64 * 1024
/** Copying chunks of this size would cost more than the frames it saves. */
const LARGE_CHUNK_BYTES = 16 * 1024

/**
 * Joins small chunks of one turn of the event loop. The first chunk is delivered at once, so that an echo is not delayed;
 * the following ones are delivered together at the end of the turn, so that bulk output uses large frames.
 */
export class OutputBatch {
  readonly #deliver: (stream: OutputStream, bytes: Uint8Array) => void
  readonly #chunks: Uint8Array[] = []
  #stream: OutputStream = 'stdout'
  #bytes = 0
  /** Set from the first chunk of a turn to the turn's end. */
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

  /** Delivers waiting chunks. The owner calls it before it reports the exit, which no output may follow. */
  flush(): void {
    const [first] = this.#chunks
    if (first === undefined) return
    const bytes = this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks)
    this.#chunks.length = 0
    this.#bytes = 0
    this.#deliver(this.#stream, bytes)
  }

  readonly #turnEnded = (): void => {
    this.#endOfTurn = this.#bytes > 0 ? setImmediate(this.#turnEnded) : undefined
    this.flush()
  }
}
