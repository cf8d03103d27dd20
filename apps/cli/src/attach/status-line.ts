/** The terminal a status line is drawn on. */
export interface StatusCanvas {
  readonly write: (text: string) => void
  readonly columns: () => number
  /** A full-screen program owns the screen; the line covers its last row, and it has to repaint afterwards. */
  readonly isAlternateScreen: () => boolean
  /** False while the remote is in the middle of a sequence. */
  readonly canDraw: () => boolean
  /** What the line covered cannot be put back. */
  readonly onRepaintNeeded: () => void
}

const SAVE = '\x1b7'
const RESTORE = '\x1b8'
const BLANK_LINE = '\x1b[0m\x1b[2K'
/** Moves to the last row, wherever that is. */
const LAST_ROW = '\x1b[9999;1H'
/** Makes sure that there is a row below, scrolling if need be; the cursor keeps its column and its text. */
const MAKE_ROOM = '\x1bD\x1b[A'
const BELOW = '\x1b[B\r'

/**
 * One line of talk on a screen that belongs to somebody else. It stands in the row below the cursor, or in the last
 * row of a full-screen program; the cursor does not move. It goes away before the remote draws again.
 */
export class StatusLine {
  readonly #canvas: StatusCanvas
  #shown: { readonly text: string; readonly place: 'below' | 'last' } | undefined
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(canvas: StatusCanvas) {
    this.#canvas = canvas
  }

  /** Shows a line in place of the one before, until it is cleared. */
  show(text: string): void {
    clearTimeout(this.#timer)
    const fitting = text.slice(0, Math.max(0, this.#canvas.columns() - 1))
    if (this.#shown?.text === fitting || !this.#canvas.canDraw()) return
    const place = this.#shown?.place ?? (this.#canvas.isAlternateScreen() ? 'last' : 'below')
    const room = this.#shown === undefined && place === 'below' ? MAKE_ROOM : ''
    this.#shown = { text: fitting, place }
    this.#canvas.write(
      `${room}${SAVE}${place === 'last' ? LAST_ROW : BELOW}${BLANK_LINE}\x1b[7m${fitting}\x1b[0m${RESTORE}`,
    )
  }

  /** Shows a line for a while. */
  flash(text: string, forMs: number): void {
    this.show(text)
    this.#timer = setTimeout(() => this.clear(), forMs)
  }

  clear(): void {
    clearTimeout(this.#timer)
    const shown = this.#shown
    if (shown === undefined) return
    this.#shown = undefined
    this.#canvas.write(`${SAVE}${shown.place === 'last' ? LAST_ROW : BELOW}${BLANK_LINE}${RESTORE}`)
    if (shown.place === 'last') this.#canvas.onRepaintNeeded()
  }
}
