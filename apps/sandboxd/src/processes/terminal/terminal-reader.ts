import { type AnswerWait, Attention } from './answer-wait.ts'
import { EAGAIN, EINTR, readableBytes, readFd } from '../linux/libc.ts'
import type { OutputReaderEvents } from '../pipe/output-reader.ts'
import type { Readiness } from '../linux/readiness.ts'

/** Most that is handed over at once to an owner that has lately held the process back: it stands before what follows Ctrl-C. */
export const CAREFUL_BYTES = 20 * 1024
/** The same for an owner that keeps up. */
const EAGER_BYTES = 64 * 1024
/** An owner that has taken this much without a pause keeps up; a slow link's window is smaller. */
const KEEPS_UP_BYTES = 128 * 1024
/** The kernel hands over this much of a terminal per read. */
const PAGE_BYTES = 4_096
/** A first read that brings less is no flood and has emptied the terminal; if not, the next turn finds the rest. */
const SHORT_READ_BYTES = 1_024

/** What all terminals of a program share. */
export class TerminalLoop {
  readonly readiness: Readiness
  readonly answers: AnswerWait
  /** Where chunks are read to; copied before anything else runs. */
  readonly scratch = new Uint8Array(EAGER_BYTES)

  constructor(readiness: Readiness, answers: AnswerWait) {
    this.readiness = readiness
    this.answers = answers
  }
}

/**
 * Reads the master of a terminal in order, a bounded chunk per turn of the event loop; while paused it takes nothing, so
 * that what an interrupt discards is still the kernel's. The descriptor is the owner's to close after `stop`.
 */
export class TerminalReader {
  readonly #fd: number
  readonly #loop: TerminalLoop
  readonly #events: OutputReaderEvents
  readonly #attention = new Attention()
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

  /** Reads what is there now; true when that was nothing. */
  look(): boolean {
    if (this.#isPaused || this.#isOver) return false
    return this.#take()
  }

  /** Types something, and takes the answer at once if it comes within a moment. */
  expectAnswer(type: () => void): void {
    const { readiness, answers } = this.#loop
    if (this.#isPaused || this.#isOver || !answers.begin(this.#attention)) {
      type()
      return
    }
    // Behind what is sent in this turn, whatever goes wrong in it.
    setImmediate(() => {
      readiness.release(this.#fd)
      answers.endTurn()
    })
    type()
    // While the program is at work. If it has answered already, the event loop is woken in vain.
    readiness.hold(this.#fd)
    answers.await(this.#attention, this.#fd, this.#tookAnswer)
  }

  /** True when there was something, or nothing is to be read any more. */
  readonly #tookAnswer = (): boolean => {
    if (this.#isPaused || this.#isOver) return true
    return readableBytes(this.#fd) !== 0 && !this.#take()
  }

  readonly #readable = (): void => {
    this.#take()
  }

  /** Reads one chunk; true when the terminal is empty. */
  #take(): boolean {
    const { scratch } = this.#loop
    const limit = this.#bytesSincePause < KEEPS_UP_BYTES ? CAREFUL_BYTES : EAGER_BYTES
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
