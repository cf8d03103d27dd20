import { joinInput } from '../join-input.ts'
import { closeFd, EAGAIN, EINTR, writeFd } from '../linux/libc.ts'

export interface PipeInputEvents {
  /** `bytes` more were written, or never will be. */
  settled(bytes: number): void
  /** The reader is gone; called at most once. */
  closed(): void
}

/** Bytes given to Bun's poller while the pipe is full; they are settled only when all are written. */
const WAIT_BYTES = 4_096

type State = 'open' | 'closing' | 'closed'

/**
 * Writes to a pipe in order, and owns its write end.
 *
 * Writes go straight to the kernel. Only when the pipe is full, a small piece goes through a `FileSink`, because Bun has no
 * other way to wait until a descriptor is writable.
 */
export class PipeInput {
  readonly #fd: number
  readonly #events: PipeInputEvents
  readonly #queue: Uint8Array[] = []
  #state: State = 'open'
  #sink: Bun.FileSink | undefined
  /** The sink has a piece. */
  #isWaiting = false

  constructor(fd: number, events: PipeInputEvents) {
    this.#fd = fd
    this.#events = events
  }

  write(chunk: Uint8Array): void {
    if (chunk.byteLength === 0) return
    if (this.#state !== 'open') {
      this.#events.settled(chunk.byteLength)
      return
    }
    this.#push(chunk)
    this.#pump()
  }

  /** The sink may have the first piece, which stays as it is; later pieces are joined. */
  #push(chunk: Uint8Array): void {
    const last = this.#queue.length > 1 ? this.#queue.at(-1) : undefined
    const joined = last === undefined ? undefined : joinInput(last, chunk)
    if (joined === undefined) this.#queue.push(chunk)
    else this.#queue[this.#queue.length - 1] = joined
  }

  /** Closes the pipe after what is queued. */
  end(): void {
    if (this.#state !== 'open') return
    this.#state = 'closing'
    this.#pump()
  }

  /** Closes the pipe now; what is queued is settled unwritten. */
  abandon(): void {
    if (this.#state === 'closed') return
    const hadQueue = this.#queue.length > 0
    this.#close()
    if (hadQueue) this.#events.closed()
    this.#settleQueue()
  }

  #pump(): void {
    while (!this.#isWaiting && this.#state !== 'closed') {
      const chunk = this.#queue[0]
      if (chunk === undefined) {
        if (this.#state === 'closing') this.#close()
        return
      }
      const written = writeFd(this.#fd, chunk)
      if (written >= 0) this.#advance(chunk, written)
      else if (written === -EAGAIN) this.#wait(chunk)
      else if (written !== -EINTR) this.#lose()
    }
  }

  #advance(chunk: Uint8Array, written: number): void {
    if (written === chunk.byteLength) this.#queue.shift()
    else this.#queue[0] = chunk.subarray(written)
    this.#events.settled(written)
  }

  #wait(chunk: Uint8Array): void {
    this.#isWaiting = true
    this.#sink ??= Bun.file(this.#fd).writer({ highWaterMark: 1 })
    const piece = chunk.subarray(0, WAIT_BYTES)
    flushPiece(this.#sink, piece).then(
      () => {
        this.#isWaiting = false
        if (this.#state === 'closed') this.#release()
        else this.#advance(chunk, piece.byteLength)
        this.#pump()
      },
      () => {
        this.#isWaiting = false
        if (this.#state === 'closed') this.#release()
        else this.#lose()
      },
    )
  }

  /** The reader is gone: EPIPE, or any other error after which nothing can be written. */
  #lose(): void {
    this.#close()
    this.#events.closed()
    this.#settleQueue()
  }

  #settleQueue(): void {
    let bytes = 0
    for (const chunk of this.#queue.splice(0)) bytes += chunk.byteLength
    if (bytes > 0) this.#events.settled(bytes)
  }

  #close(): void {
    this.#state = 'closed'
    // A descriptor that the sink still polls must not be closed: its number could be reused before the sink writes.
    if (!this.#isWaiting) this.#release()
  }

  #release(): void {
    const sink = this.#sink
    this.#sink = undefined
    if (sink === undefined) closeFd(this.#fd)
    else void endSink(sink).then(() => closeFd(this.#fd))
  }
}

async function flushPiece(sink: Bun.FileSink, piece: Uint8Array): Promise<void> {
  await sink.write(piece)
  await sink.flush()
}

async function endSink(sink: Bun.FileSink): Promise<void> {
  try {
    await sink.end()
  } catch {
    // The pipe is broken, and closing it is all that is left to do.
  }
}
