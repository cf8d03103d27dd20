import { write } from 'node:fs'

/** Most that one system call is given. */
const BATCH_BYTES = 256 * 1024
/** Pause before trying a descriptor again that somebody else made non-blocking. */
const AGAIN_MS = 5

type Pending = { readonly bytes: Uint8Array; readonly done: () => void }

/**
 * Writes to a descriptor in order, and tells when the kernel has the bytes: that is what holds a fast remote back.
 *
 * Writes happen in Bun's thread pool. `process.stdout` and `FileSink` (Bun 1.4) leave O_NONBLOCK behind on a pipe that
 * other programs share, and block the event loop on a terminal that does not read.
 */
export class OutputWriter {
  readonly #fd: number
  readonly #onBroken: (code: string) => void
  readonly #queue: Pending[] = []
  #idle: (() => void)[] = []
  #isWriting = false
  /** Those whose bytes the kernel is being given. */
  #batch: readonly Pending[] = []
  #isBroken = false

  /** `onError` is called once, when nothing more can be written; from then on bytes count as written at once. */
  constructor(fd: number, onError: (code: string) => void) {
    this.#fd = fd
    this.#onBroken = onError
  }

  /** Resolves when the bytes are written, or will never be. */
  write(bytes: Uint8Array): Promise<void> {
    if (this.#isBroken || bytes.byteLength === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#queue.push({ bytes, done: resolve })
      if (!this.#isWriting) this.#next()
    })
  }

  /** Resolves when nothing waits. */
  drained(): Promise<void> {
    if (!this.#isWriting) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  /** Writes nothing more that the kernel has not got yet: whoever reads has stopped, and nobody waits for them. */
  giveUp(): void {
    this.#isBroken = true
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
    const idle = this.#idle
    this.#idle = []
    for (const resolve of idle) resolve()
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
    // Given up meanwhile: the descriptor may be closed by now.
    if (this.#isBroken) {
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
      setTimeout(() => this.#put(bytes), AGAIN_MS)
      return
    }
    const wasBroken = this.#isBroken
    this.giveUp()
    if (!wasBroken) this.#onBroken(error.code ?? 'EIO')
    this.#next()
  }
}
