/** The drawing part of a terminal. */
export interface Canvas {
  /** Parses asynchronously, in order, then calls `done`. */
  write(bytes: Uint8Array | string, done: () => void): void
  /** Takes effect at once, before pending writes. */
  resize(cols: number, rows: number): void
  reset(): void
}

type Step =
  | { readonly kind: 'write'; readonly bytes: Uint8Array; readonly done: () => void }
  | { readonly kind: 'resize'; readonly cols: number; readonly rows: number }
  | { readonly kind: 'reset' }

/**
 * Keeps resizes in order with output. xterm.js parses asynchronously but resizes at once, so a resize waits until the
 * bytes before it are parsed, and what follows waits with it. The attachment's window bounds what waits, because none
 * of it counts as consumed.
 */
export class OrderedScreen {
  readonly #canvas: Canvas
  readonly #waiting: Step[] = []
  #unparsed = 0

  constructor(canvas: Canvas) {
    this.#canvas = canvas
  }

  write(bytes: Uint8Array, done: () => void): void {
    this.#take({ kind: 'write', bytes, done })
  }

  resize(cols: number, rows: number): void {
    this.#take({ kind: 'resize', cols, rows })
  }

  /** Replaces everything by a screen. */
  redraw(
    screen: { readonly cols: number; readonly rows: number; readonly bytes: Uint8Array },
    done: () => void,
  ): void {
    this.#take({ kind: 'reset' })
    this.#take({ kind: 'resize', cols: screen.cols, rows: screen.rows })
    this.#take({ kind: 'write', bytes: screen.bytes, done })
  }

  #take(step: Step): void {
    this.#waiting.push(step)
    this.#advance()
  }

  #advance(): void {
    for (let step = this.#waiting[0]; step !== undefined; step = this.#waiting[0]) {
      if (step.kind !== 'write' && this.#unparsed > 0) return
      this.#waiting.shift()
      this.#perform(step)
    }
  }

  #perform(step: Step): void {
    switch (step.kind) {
      case 'reset':
        return this.#canvas.reset()
      case 'resize':
        return this.#canvas.resize(step.cols, step.rows)
      case 'write':
        this.#unparsed += 1
        return this.#canvas.write(step.bytes, () => {
          this.#unparsed -= 1
          step.done()
          this.#advance()
        })
    }
  }
}
