import { LeftOut } from './left-out.ts'
import { type Progress, spellProgress } from './progress.ts'

/** More often nobody can read. */
const DRAW_EVERY_MS = 100
const CLEAR_LINE = '\r\x1b[K'

/** The terminal that progress is drawn on. */
export interface ProgressCanvas {
  readonly write: (text: string) => void
  readonly columns: () => number
}

/** One copy on its way: how far it is, what it left out, and the line that says so on a terminal. */
export class Copying implements Disposable {
  readonly leftOut = new LeftOut()
  readonly #canvas: ProgressCanvas | undefined
  readonly #now: () => number
  readonly #startedMs: number
  #bytes = 0
  #entries = 0
  #totalBytes: number | undefined
  #name = ''
  #trouble: string | undefined
  #drawnMs = Number.NEGATIVE_INFINITY
  #isShown = false
  #kept: string | undefined

  constructor(canvas: ProgressCanvas | undefined, now: () => number) {
    this.#canvas = canvas
    this.#now = now
    this.#startedMs = now()
  }

  /** Somebody looks at it. */
  get isDrawn(): boolean {
    return this.#canvas !== undefined
  }

  /** What it came to. */
  get sum(): { readonly entries: number; readonly bytes: number; readonly leftOut: number } {
    return { entries: this.#entries, bytes: this.#bytes, leftOut: this.leftOut.count }
  }

  /** What was cut on its way and goes on when it is copied again. */
  get kept(): string | undefined {
    return this.#kept
  }

  keep(path: string): void {
    this.#kept = path
  }

  expect(totalBytes: number | undefined): void {
    this.#totalBytes = totalBytes
  }

  at(name: string): void {
    this.#name = name
    this.#draw()
  }

  /** Bytes that arrived; fewer than none when they have to be copied again. */
  moved(bytes: number): void {
    this.#bytes += bytes
    this.#trouble = undefined
    this.#draw()
  }

  done(entries = 1): void {
    this.#entries += entries
    this.#draw()
  }

  /** Says why nothing moves. */
  stalled(trouble: string): void {
    this.#trouble = trouble
    this.#drawnMs = Number.NEGATIVE_INFINITY
    this.#draw()
  }

  [Symbol.dispose](): void {
    if (this.#isShown) this.#canvas?.write(CLEAR_LINE)
    this.#isShown = false
  }

  #draw(): void {
    const now = this.#now()
    if (this.#canvas === undefined || now - this.#drawnMs < DRAW_EVERY_MS) return
    this.#drawnMs = now
    const progress: Progress = {
      bytes: this.#bytes,
      totalBytes: this.#totalBytes,
      entries: this.#entries,
      name: this.#name,
      elapsedMs: now - this.#startedMs,
      trouble: this.#trouble,
    }
    this.#isShown = true
    this.#canvas.write(`${CLEAR_LINE}${spellProgress(progress, this.#canvas.columns())}`)
  }
}
