import { joinInput } from '../join-input.ts'
import { EAGAIN, EINTR, writeFd } from '../linux/libc.ts'
import { endOfFile, isCanonical, isReadingSecret, LineGuard } from './line-guard.ts'
import type { InputRefusal } from '../process.ts'
import { flushInput, setWindowSize, type Termios, TermiosReader } from './pty-device.ts'

export interface PtyInputEvents {
  settled(bytes: number): void
  refused(reason: InputRefusal): void
  closed(): void
}

type Item =
  /** Bytes from the owner: settled when written, limited by the line guard. */
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  /** Control characters of our own: neither settled nor limited. */
  | { readonly kind: 'control'; readonly bytes: Uint8Array }
  | { readonly kind: 'resize'; readonly cols: number; readonly rows: number }
  | { readonly kind: 'eof' }

/** Most bytes per write, so that the terminal's mode is read again at least this often. */
const SLICE_BYTES = 4_096
/** First and longest delay before writing to a full terminal again, which has no event that Bun could wait for. */
const RETRY_MIN_MS = 1
const RETRY_MAX_MS = 32

/** Writes bytes, sizes and end of file to the master of a terminal, in order. Does not own the descriptor. */
export class PtyInput {
  readonly #masterFd: number
  readonly #events: PtyInputEvents
  readonly #termios: TermiosReader
  readonly #guard = new LineGuard()
  readonly #queue: Item[] = []
  /** The rest of a refused line is being dropped. */
  #isRefusing = false
  #isClosed = false
  #isPumping = false
  #retryMs = RETRY_MIN_MS
  #retry: Timer | undefined

  constructor(masterFd: number, events: PtyInputEvents) {
    this.#masterFd = masterFd
    this.#termios = new TermiosReader(masterFd)
    this.#events = events
  }

  write(bytes: Uint8Array): void {
    if (bytes.byteLength === 0) return
    if (this.#isClosed) this.#events.settled(bytes.byteLength)
    else this.#push({ kind: 'bytes', bytes })
  }

  end(): void {
    this.#push({ kind: 'eof' })
  }

  resize(cols: number, rows: number): void {
    this.#push({ kind: 'resize', cols, rows })
  }

  /** True while the terminal edits lines without showing them. */
  get isReadingSecret(): boolean {
    const termios = this.#isClosed ? undefined : this.#termios.read()
    return termios !== undefined && isReadingSecret(termios)
  }

  /** Writes nothing more; what is queued is settled unwritten. */
  abandon(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#retry)
    let bytes = 0
    for (const item of this.#queue.splice(0)) if (item.kind === 'bytes') bytes += item.bytes.byteLength
    if (bytes === 0) return
    this.#events.closed()
    this.#events.settled(bytes)
  }

  #push(item: Item): void {
    if (this.#isClosed) return
    const joined = this.#joinLast(item)
    if (joined === undefined) this.#queue.push(item)
    else this.#queue[this.#queue.length - 1] = joined
    if (this.#retry === undefined && !this.#isPumping) this.#pump()
  }

  /**
   * Keystrokes that wait behind others become one item; the first item may be half done and stays. Of sizes in a row the
   * first and the last count: two that differ make a program draw anew.
   */
  #joinLast(item: Item): Item | undefined {
    const last = this.#queue.length > 1 ? this.#queue.at(-1) : undefined
    if (last?.kind === 'resize' && item.kind === 'resize')
      return this.#queue.at(-2)?.kind === 'resize' ? item : undefined
    if (last?.kind !== 'bytes' || item.kind !== 'bytes') return undefined
    const bytes = joinInput(last.bytes, item.bytes)
    return bytes === undefined ? undefined : { kind: 'bytes', bytes }
  }

  #pump(): void {
    this.#isPumping = true
    try {
      while (!this.#isClosed) {
        const item = this.#queue[0]
        if (item === undefined) return
        if (this.#perform(item)) continue
        this.#retryLater()
        return
      }
    } finally {
      this.#isPumping = false
    }
  }

  /** Takes one step on the first item; false when the terminal is full. */
  #perform(item: Item): boolean {
    switch (item.kind) {
      case 'resize':
        setWindowSize(this.#masterFd, item.cols, item.rows)
        this.#queue.shift()
        return true
      case 'eof':
        this.#queue.splice(0, 1, { kind: 'control', bytes: this.#endOfFileSequence() })
        return true
      case 'control':
        return this.#writeControl(item.bytes)
      case 'bytes':
        return this.#writeBytes(item.bytes)
    }
  }

  /**
   * On an unfinished line the first end-of-file character only submits the line; the second one is read as the end. When a program
   * turned line editing off, read the line, and turned it on again, the line still counts as unfinished here, so the end is sent
   * twice: no system call reports that modes changed meanwhile, or what the kernel holds of an unfinished line.
   */
  #endOfFileSequence(): Uint8Array {
    const termios = this.#termios.read()
    const character = termios === undefined ? 0 : endOfFile(termios)
    if (termios === undefined || character === 0) return new Uint8Array(0)
    const isMidLine = isCanonical(termios) && this.#guard.length > 0
    this.#isRefusing = false
    this.#guard.reset()
    return new Uint8Array(isMidLine ? [character, character] : [character])
  }

  #writeControl(bytes: Uint8Array): boolean {
    const written = this.#write(bytes)
    if (written < 0) return false
    if (written === bytes.byteLength) this.#queue.shift()
    else this.#queue[0] = { kind: 'control', bytes: bytes.subarray(written) }
    return true
  }

  #writeBytes(bytes: Uint8Array): boolean {
    const termios = this.#termios.read()
    if (termios !== undefined && isCanonical(termios)) return this.#writeLines(bytes, termios)
    this.#isRefusing = false
    this.#guard.reset()
    const written = this.#write(bytes.subarray(0, SLICE_BYTES))
    if (written < 0) return false
    this.#consume(bytes, written)
    return true
  }

  #writeLines(bytes: Uint8Array, termios: Termios): boolean {
    if (this.#isRefusing) {
      this.#drop(bytes, termios)
      return true
    }
    const slice = bytes.subarray(0, SLICE_BYTES)
    const fitting = this.#guard.countFitting(slice, termios)
    if (fitting === 0) {
      this.#startRefusing(bytes, termios)
      return true
    }
    const written = this.#write(slice.subarray(0, fitting))
    if (written < 0) return false
    this.#guard.advance(slice.subarray(0, written), termios)
    this.#consume(bytes, written)
    return true
  }

  /** Erases the part of the line that the kernel already holds, so that none of it is executed. */
  #startRefusing(bytes: Uint8Array, termios: Termios): void {
    const kill = this.#guard.killSequence(termios)
    this.#guard.reset()
    // First, because the sender is known only until the bytes are settled.
    this.#events.refused('line_too_long')
    this.#drop(bytes, termios)
    if (kill === undefined) flushInput(this.#masterFd)
    else this.#queue.unshift({ kind: 'control', bytes: kill })
  }

  /** Drops the rest of a refused line. */
  #drop(bytes: Uint8Array, termios: Termios): void {
    const { count, isOver } = this.#guard.countRefused(bytes, termios)
    this.#isRefusing = !isOver
    this.#consume(bytes, count)
  }

  #consume(bytes: Uint8Array, count: number): void {
    if (count === bytes.byteLength) this.#queue.shift()
    else this.#queue[0] = { kind: 'bytes', bytes: bytes.subarray(count) }
    if (count > 0) this.#events.settled(count)
  }

  /** Bytes written, or -1 when the terminal is full. Writes to a closed terminal succeed until `abandon`. */
  #write(bytes: Uint8Array): number {
    if (bytes.byteLength === 0) return 0
    const written = writeFd(this.#masterFd, bytes)
    if (written === 0 || written === -EAGAIN || written === -EINTR) return -1
    this.#retryMs = RETRY_MIN_MS
    return written < 0 ? bytes.byteLength : written
  }

  #retryLater(): void {
    this.#retry = setTimeout(() => {
      this.#retry = undefined
      this.#pump()
    }, this.#retryMs)
    this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MAX_MS)
  }
}
