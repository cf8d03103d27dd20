import { type EchoWait, EchoHistory } from './echo-wait.ts'
import { EAGAIN, EINTR, readableBytes, readFd } from '../linux/libc.ts'
import type { OutputReaderEvents } from '../pipe/output-reader.ts'
import type { Readiness } from '../linux/readiness.ts'

/** Largest chunk for an owner that paused the process lately: output after a Ctrl-C is queued after it. */
export const SMALL_CHUNK_BYTES = 20 * 1024
/** Largest chunk for an owner that keeps up. */
const LARGE_CHUNK_BYTES = 64 * 1024
/** An owner that has taken this much without a pause keeps up; the window of a slow connection is smaller. */
const KEEPS_UP_BYTES = 128 * 1024
/** A read of a terminal returns at most this much. */
const PAGE_BYTES = 4_096
/** A first read of less has most likely emptied the terminal; if not, the next turn reads the rest. */
const SHORT_READ_BYTES = 1_024

/** Shared by all terminals of this process. */
export class TerminalLoop {
  readonly readiness: Readiness
  readonly echoWait: EchoWait
  /** Read buffer; chunks are copied from it before anything else runs. */
  readonly scratch = new Uint8Array(LARGE_CHUNK_BYTES)

  constructor(readiness: Readiness, echoWait: EchoWait) {
    this.readiness = readiness
    this.echoWait = echoWait
  }
}

/**
 * Reads the master of a terminal in order, one bounded chunk per turn of the event loop. While paused it reads nothing, so
 * that an interrupt can discard output that is still in the kernel. The owner closes the descriptor after `stop`.
 */
export class TerminalReader {
  readonly #fd: number
  readonly #loop: TerminalLoop
  readonly #events: OutputReaderEvents
  readonly #echoHistory = new EchoHistory()
  #isPaused = false
  #isOver = false
  #bytesSincePause = 0

  constructor(fd: number, loop: TerminalLoop, events: OutputReaderEvents) {
    this.#fd = fd
    this.#loop = loop
    this.#events = events
    this.#loop.readiness.watch(fd, this.#readable)
  }

  pause(): void {
    if (this.#isPaused || this.#isOver) return
    this.#isPaused = true
    this.#bytesSincePause = 0
    this.#loop.readiness.unwatch(this.#fd)
  }

  resume(): void {
    if (!this.#isPaused || this.#isOver) return
    this.#isPaused = false
    this.#loop.readiness.watch(this.#fd, this.#readable)
  }

  /** Ends reading without a further event. */
  stop(): void {
    if (!this.#isOver && !this.#isPaused) this.#loop.readiness.unwatch(this.#fd)
    this.#isOver = true
  }

  /** Reads what is available now; true when nothing was. */
  poll(): boolean {
    if (this.#isPaused || this.#isOver) return false
    return this.#take()
  }

  /** Writes input, and reads its echo at once if it comes within a moment. */
  writeAndAwaitEcho(write: () => void): void {
    const { readiness, echoWait } = this.#loop
    if (this.#isPaused || this.#isOver || !echoWait.begin(this.#echoHistory)) {
      write()
      return
    }
    // After this turn's sends, even if one of them throws.
    setImmediate(() => {
      readiness.release(this.#fd)
      echoWait.endTurn()
    })
    write()
    // While the program works, so that the echo does not also wake the event loop.
    readiness.hold(this.#fd)
    echoWait.await(this.#echoHistory, this.#fd, this.#readEcho)
  }

  /** True when output was read, or none is to be read any more. */
  readonly #readEcho = (): boolean => {
    if (this.#isPaused || this.#isOver) return true
    return readableBytes(this.#fd) !== 0 && !this.#take()
  }

  readonly #readable = (): void => {
    this.#take()
  }

  /** Reads one chunk; true when the terminal is empty. */
  #take(): boolean {
    const { scratch } = this.#loop
    const limit = this.#bytesSincePause < KEEPS_UP_BYTES ? SMALL_CHUNK_BYTES : LARGE_CHUNK_BYTES
    let bytes = 0
    let count = 0
    while (bytes + PAGE_BYTES <= limit) {
      count = readFd(this.#fd, scratch.subarray(bytes, limit))
      if (count === -EINTR) continue
      if (count <= 0) break
      bytes += count
      if (bytes < SHORT_READ_BYTES) break
    }
    if (bytes > 0) {
      this.#bytesSincePause += bytes
      this.#events.chunk(scratch.slice(0, bytes))
      return false
    }
    if (count === -EAGAIN) return true
    this.stop()
    this.#events.ended()
    return false
  }
}
