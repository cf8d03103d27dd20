/** The terminal a status line is drawn on. */
export interface StatusTerminal {
  readonly write: (text: string) => void
  readonly columns: () => number
  /** A full-screen program is active; the line covers its last row. */
  readonly isAlternateScreen: () => boolean
  /** False in the middle of an escape sequence from the remote program. */
  readonly canDraw: () => boolean
  /** The covered row has to be repainted by the program. */
  readonly onRepaintNeeded: () => void
}

const SAVE = '\x1b7'
const RESTORE = '\x1b8'
const BLANK_LINE = '\x1b[0m\x1b[2K'
/** Moves to the last row. */
const LAST_ROW = '\x1b[9999;1H'
/** Scrolls if there is no row below; the cursor keeps its column and its text. */
const MAKE_ROOM = '\x1bD\x1b[A'
const BELOW = '\x1b[B\r'

/**
 * One line on a screen that a remote program draws: in the row below the cursor, or in the last row of a full-screen
 * program. The cursor does not move. The line is cleared before the remote program draws again.
 */
export class StatusLine {
  readonly #terminal: StatusTerminal
  #shown: { readonly text: string; readonly position: 'below' | 'last' } | undefined
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(terminal: StatusTerminal) {
    this.#terminal = terminal
  }

  /** Replaces the line; shown until it is cleared. */
  show(text: string): void {
    clearTimeout(this.#timer)
    const fitting = text.slice(0, Math.max(0, this.#terminal.columns() - 1))
    if (this.#shown?.text === fitting || !this.#terminal.canDraw()) return
    const position = this.#shown?.position ?? (this.#terminal.isAlternateScreen() ? 'last' : 'below')
    const room = this.#shown === undefined && position === 'below' ? MAKE_ROOM : ''
    this.#shown = { text: fitting, position }
    this.#terminal.write(
      `${room}${SAVE}${position === 'last' ? LAST_ROW : BELOW}${BLANK_LINE}\x1b[7m${fitting}\x1b[0m${RESTORE}`,
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
    this.#terminal.write(`${SAVE}${shown.position === 'last' ? LAST_ROW : BELOW}${BLANK_LINE}${RESTORE}`)
    if (shown.position === 'last') this.#terminal.onRepaintNeeded()
  }
}
