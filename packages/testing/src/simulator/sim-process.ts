import type { OutputStream, ProcessExit } from '@sandwire/protocol'
import type { Scheduler } from './scheduler.ts'

/** The byte every simulated process writes at an offset. */
export function outputByte(offset: number): number {
  return (offset * 31 + (offset >> 8) * 17 + 7) & 0xff
}

/** The stream a simulated process writes on at an offset; it changes every few bytes. */
export function outputStream(offset: number, isPty: boolean): OutputStream {
  return !isPty && ((offset >> 4) * 7) % 3 === 0 ? 'stderr' : 'stdout'
}

/** One input of a process. */
export type ProcessInput =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'eof' }
  | { readonly kind: 'resize'; readonly cols: number; readonly rows: number }
  | { readonly kind: 'signal'; readonly signal: string }

export interface ProcessPlan {
  readonly isPty: boolean
  readonly totalBytes: number
  readonly maxChunkBytes: number
  /** Milliseconds between writes. */
  readonly paceMs: number
  /** Most milliseconds before the process reads more input. */
  readonly inputLagMs: number
  /** Exits only after end of input, like `cat`. */
  readonly waitsForEof: boolean
  /** Closes its input after this many bytes, like `head`; undefined: reads all input. */
  readonly closesInputAfter: number | undefined
  readonly exit: ProcessExit
}

interface ProcessListener {
  output(stream: OutputStream, bytes: Uint8Array): void
  inputSettled(bytes: number): void
  inputClosed(): void
  ended(exit: ProcessExit): void
}

/** A process with deterministic output that records its input. */
export class SimProcess {
  readonly #scheduler: Scheduler
  readonly #plan: ProcessPlan
  readonly #listener: ProcessListener
  readonly applied: ProcessInput[] = []
  #written = 0
  #isPaused = false
  #isScheduled = false
  #ended: { readonly exit: ProcessExit; readonly atMs: number } | undefined
  #hasEof = false
  #isInputClosed = false
  #bytesRead = 0
  /** Input not read yet, oldest first. */
  #unread: ProcessInput[] = []
  #isReading = false

  constructor(scheduler: Scheduler, plan: ProcessPlan, listener: ProcessListener) {
    this.#scheduler = scheduler
    this.#plan = plan
    this.#listener = listener
    this.#schedule()
  }

  /** How and when it ended; undefined while it runs. */
  get ended(): { readonly exit: ProcessExit; readonly atMs: number } | undefined {
    return this.#ended
  }

  get isInputClosed(): boolean {
    return this.#isInputClosed
  }

  get written(): number {
    return this.#written
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#schedule()
  }

  /** Signals apply at once, everything else when it is read. */
  receive(input: ProcessInput): void {
    if (this.#ended !== undefined) return
    if (input.kind === 'signal') {
      this.applied.push(input)
      return
    }
    this.#unread.push(input)
    this.#read()
  }

  /** Ends now, as if killed. */
  kill(): void {
    this.#end({ code: null, signal: 'SIGKILL', truncated: false })
  }

  #read(): void {
    if (this.#isReading || this.#unread.length === 0) return
    this.#isReading = true
    this.#scheduler.after(this.#scheduler.random.int(0, this.#plan.inputLagMs), () => {
      this.#isReading = false
      if (this.#ended !== undefined) return
      const first = this.#unread.shift()
      if (first !== undefined) this.#apply(first)
      this.#read()
    })
  }

  #apply(input: ProcessInput): void {
    if (input.kind === 'eof') {
      this.#hasEof = true
      this.applied.push(input)
      this.#schedule()
      return
    }
    if (input.kind !== 'bytes') {
      this.applied.push(input)
      return
    }
    if (this.#isInputClosed) return
    const part = this.#scheduler.random.int(1, input.bytes.byteLength)
    if (part < input.bytes.byteLength) {
      this.#unread.unshift({ kind: 'bytes', bytes: input.bytes.subarray(part) })
    }
    this.applied.push({ kind: 'bytes', bytes: input.bytes.slice(0, part) })
    this.#bytesRead += part
    this.#listener.inputSettled(part)
    const { closesInputAfter } = this.#plan
    if (closesInputAfter === undefined || this.#bytesRead < closesInputAfter) return
    this.#isInputClosed = true
    this.#listener.inputClosed()
  }

  #schedule(): void {
    if (this.#isScheduled || this.#ended !== undefined) return
    this.#isScheduled = true
    this.#scheduler.after(this.#scheduler.random.int(0, this.#plan.paceMs), () => {
      this.#isScheduled = false
      if (!this.#isPaused && this.#ended === undefined) this.#work()
    })
  }

  #work(): void {
    const { totalBytes, waitsForEof, exit } = this.#plan
    if (this.#written < totalBytes) {
      this.#write()
      this.#schedule()
    } else if (!waitsForEof || this.#hasEof) this.#end(exit)
  }

  #write(): void {
    const { totalBytes, maxChunkBytes, isPty } = this.#plan
    const stream = outputStream(this.#written, isPty)
    const wanted = Math.min(this.#scheduler.random.int(1, maxChunkBytes), totalBytes - this.#written)
    let length = 1
    while (length < wanted && outputStream(this.#written + length, isPty) === stream) length += 1
    const start = this.#written
    this.#written += length
    this.#listener.output(
      stream,
      Uint8Array.from({ length }, (_, index) => outputByte(start + index)),
    )
  }

  #end(exit: ProcessExit): void {
    if (this.#ended !== undefined) return
    this.#ended = { exit, atMs: this.#scheduler.nowMs }
    this.#listener.ended(exit)
  }
}
