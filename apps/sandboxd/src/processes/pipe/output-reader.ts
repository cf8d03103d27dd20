/** Events of one descriptor. */
export interface OutputReaderEvents {
  /** One chunk, in order; the chunk belongs to the receiver. */
  chunk(bytes: Uint8Array): void
  /** No more chunks: end of file, or an error after which nothing can be read. */
  ended(): void
}

/** Chunks that fill less of their allocation are copied, so that a stored byte does not retain 64 KiB. */
const COPY_BELOW_SHARE = 0.5

/**
 * Reads a descriptor in order, one chunk at a time, delivering each in the tick it was read.
 *
 * While paused it requests nothing from the stream, which then reads at most one buffer ahead. The owner closes the
 * descriptor after `stop`.
 */
export class OutputReader {
  readonly #events: OutputReaderEvents
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  /** A read is pending. */
  #isWaiting = false
  #isPaused = false
  #isStopped = false
  /** A chunk that arrived while paused. */
  #held: Uint8Array | undefined
  /** The stream ended while paused or before the held chunk went out. */
  #isAtEnd = false

  constructor(fd: number, events: OutputReaderEvents) {
    this.#events = events
    this.#reader = Bun.file(fd).stream().getReader()
    this.#read()
  }

  /** True when everything read so far is delivered and the stream waits for the kernel, or has failed. */
  get isDrained(): boolean {
    return (this.#isWaiting || this.#isAtEnd) && this.#held === undefined
  }

  pause(): void {
    this.#isPaused = true
  }

  /** Continues in a later microtask, so a caller is never re-entered. */
  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    queueMicrotask(() => this.#advance())
  }

  /** Ends reading without a further event; resolves when the stream no longer uses the descriptor. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#held = undefined
    try {
      await this.#reader.cancel()
    } catch {
      // A failed stream no longer uses the descriptor.
    }
  }

  #read(): void {
    if (this.#isWaiting || this.#isAtEnd) return
    this.#isWaiting = true
    this.#reader.read().then(this.#onRead, this.#onError)
  }

  readonly #onRead = (result: { done: boolean; value?: Uint8Array | undefined }): void => {
    this.#isWaiting = false
    if (result.value !== undefined && result.value.byteLength > 0) this.#held = compact(result.value)
    if (result.done) this.#isAtEnd = true
    this.#advance()
  }

  readonly #onError = (): void => {
    this.#isWaiting = false
    this.#isAtEnd = true
    this.#advance()
  }

  #advance(): void {
    if (this.#isStopped || this.#isPaused || this.#isWaiting) return
    const chunk = this.#held
    if (chunk !== undefined) {
      this.#held = undefined
      this.#events.chunk(chunk)
      if (this.#isStopped || this.#isPaused) return
    }
    if (this.#isAtEnd) {
      this.#isStopped = true
      this.#events.ended()
    } else {
      this.#read()
    }
  }
}

function compact(chunk: Uint8Array): Uint8Array {
  return chunk.byteLength < chunk.buffer.byteLength * COPY_BELOW_SHARE ? chunk.slice() : chunk
}
