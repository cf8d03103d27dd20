import { write } from 'node:fs'

/** Writes are combined up to this size; a larger one is written alone. */
const BATCH_BYTES = 256 * 1024
/** Pause after EAGAIN, on a descriptor that another program made non-blocking, and after EINTR. */
const RETRY_MS = 5

type Pending = { readonly bytes: Uint8Array; readonly done: () => void }

/**
 * Writes to a descriptor in order, and resolves when the kernel has the bytes, so that a sender that is too fast has to wait.
 *
 * Writes happen in Bun's thread pool. `process.stdout` and `FileSink` (Bun 1.4) leave O_NONBLOCK behind on a pipe that
 * other programs share, and block the event loop on a terminal that does not read.
 */
export class OutputWriter {
  readonly #fd: number
  readonly #onError: (errno: string) => void
  readonly #queue: Pending[] = []
  #drainWaiters: (() => void)[] = []
  #isWriting = false
  /** Writes in progress. */
  #batch: readonly Pending[] = []
  #isClosed = false

  /** `onError` is called once, for the first failed write; later writes resolve at once. */
  constructor(fd: number, onError: (errno: string) => void) {
    this.#fd = fd
    this.#onError = onError
  }

  /** Resolves when the bytes are written or dropped. */
  write(bytes: Uint8Array): Promise<void> {
    if (this.#isClosed || bytes.byteLength === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#queue.push({ bytes, done: resolve })
      if (!this.#isWriting) this.#next()
    })
  }

  /** Resolves when all writes are done. */
  drained(): Promise<void> {
    if (!this.#isWriting) return Promise.resolve()
    return new Promise((resolve) => this.#drainWaiters.push(resolve))
  }

  /** Drops all pending writes. */
  close(): void {
    this.#isClosed = true
    for (const { done } of [...this.#batch, ...this.#queue.splice(0)]) done()
    this.#batch = []
  }

  #next(): void {
    const batch = this.#takeBatch()
    this.#batch = batch
    this.#isWriting = batch.length > 0
    if (this.#isWriting) {
      const first = batch[0]?.bytes ?? new Uint8Array(0)
      this.#put(batch.length === 1 ? first : Buffer.concat(batch.map(({ bytes }) => bytes)))
      return
    }
    const waiters = this.#drainWaiters
    this.#drainWaiters = []
    for (const resolve of waiters) resolve()
  }

  #takeBatch(): Pending[] {
    const batch: Pending[] = []
    let size = 0
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      size += next.bytes.byteLength
      if (batch.length > 0 && size > BATCH_BYTES) break
      this.#queue.shift()
      batch.push(next)
    }
    return batch
  }

  #put(bytes: Uint8Array): void {
    // Closed meanwhile: the descriptor may be invalid by now.
    if (this.#isClosed) {
      this.#next()
      return
    }
    write(this.#fd, bytes, 0, bytes.byteLength, null, (error, written) => {
      if (error !== null) this.#failed(error, bytes)
      else if (written < bytes.byteLength) this.#put(bytes.subarray(written))
      else {
        for (const { done } of this.#batch) done()
        this.#next()
      }
    })
  }

  #failed(error: NodeJS.ErrnoException, bytes: Uint8Array): void {
    if (error.code === 'EAGAIN' || error.code === 'EINTR') {
      setTimeout(() => this.#put(bytes), RETRY_MS)
      return
    }
    const wasClosed = this.#isClosed
    this.close()
    if (!wasClosed) this.#onError(error.code ?? 'EIO')
    this.#next()
  }
}
