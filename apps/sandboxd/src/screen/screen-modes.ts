import type { Terminal } from '@xterm/headless'

const SHOW_CURSOR = 25
const BLINK_CURSOR = 12
/** Private modes that select the encoding of mouse events; one is in effect at a time. */
const MOUSE_ENCODINGS: readonly number[] = [1006, 1016]
/** Longest title; it is shown in a tab. */
const MAX_TITLE_CHARS = 1024
const COLOR = /^(?:#[\da-f]{3,12}|rgb:[\da-f]{1,4}(?:\/[\da-f]{1,4}){2})$/i
const PALETTE = 4
/** OSC numbers that set the colors of text, background and cursor. */
const SPECIAL_COLORS: readonly number[] = [10, 11, 12]
/** Added to an OSC number, it restores the default color. */
const RESTORE = 100

/**
 * Tracks terminal state that can only be observed while parsing: cursor visibility and style, mouse encoding, title, colors.
 * Its handlers do not change how the bytes are parsed.
 */
export class ScreenModes {
  #isCursorHidden = false
  #cursorStyle = 0
  #isBlinking: boolean | undefined
  #mouseEncoding: number | undefined
  #title = ''
  /** By the start of their OSC sequence: `4;1` or `10`. */
  readonly #colors = new Map<string, string>()

  constructor(terminal: Terminal) {
    const { parser } = terminal
    const observe = (handle: () => void): boolean => {
      handle()
      return false
    }
    parser.registerCsiHandler({ prefix: '?', final: 'h' }, (params) => observe(() => this.#set(params, true)))
    parser.registerCsiHandler({ prefix: '?', final: 'l' }, (params) =>
      observe(() => this.#set(params, false)),
    )
    parser.registerCsiHandler({ intermediates: ' ', final: 'q' }, (params) =>
      observe(() => (this.#cursorStyle = numberOf(params[0]))),
    )
    parser.registerCsiHandler({ intermediates: '!', final: 'p' }, () => observe(() => this.#softReset()))
    parser.registerEscHandler({ final: 'c' }, () => observe(() => this.#reset()))
    parser.registerOscHandler(PALETTE, (data) => observe(() => this.#setPalette(data)))
    parser.registerOscHandler(PALETTE + RESTORE, (data) => observe(() => this.#restorePalette(data)))
    for (const which of SPECIAL_COLORS) {
      parser.registerOscHandler(which, (data) => observe(() => this.#setSpecial(which, data)))
      parser.registerOscHandler(which + RESTORE, () => observe(() => this.#colors.delete(`${which}`)))
    }
    terminal.onTitleChange((title) => (this.#title = title.slice(0, MAX_TITLE_CHARS)))
  }

  /** Sequences that bring another terminal into the same state, without moving its cursor. */
  serialize(): string {
    const title = this.#title === '' ? '' : `\x1b]2;${this.#title}\x07`
    const colors = Array.from(this.#colors, ([which, color]) => `\x1b]${which};${color}\x07`).join('')
    const encoding = this.#mouseEncoding === undefined ? '' : `\x1b[?${this.#mouseEncoding}h`
    const style = this.#cursorStyle === 0 ? '' : `\x1b[${this.#cursorStyle} q`
    const blink = this.#isBlinking === undefined ? '' : `\x1b[?${BLINK_CURSOR}${this.#isBlinking ? 'h' : 'l'}`
    return title + colors + encoding + style + blink + (this.#isCursorHidden ? '\x1b[?25l' : '')
  }

  #set(params: readonly (number | number[])[], isSet: boolean): void {
    for (const param of params) {
      const mode = numberOf(param)
      if (mode === SHOW_CURSOR) this.#isCursorHidden = !isSet
      else if (mode === BLINK_CURSOR) this.#isBlinking = isSet
      else if (MOUSE_ENCODINGS.includes(mode)) this.#mouseEncoding = isSet ? mode : undefined
    }
  }

  /** Pairs of index and color; a color may also be a query. */
  #setPalette(data: string): void {
    const slots = data.split(';')
    for (let at = 0; at + 1 < slots.length; at += 2) {
      const [index = '', color = ''] = [slots[at], slots[at + 1]]
      if (isPaletteIndex(index) && COLOR.test(color)) this.#colors.set(`${PALETTE};${Number(index)}`, color)
    }
  }

  #restorePalette(data: string): void {
    const given = data === '' ? undefined : data.split(';').map((index) => `${PALETTE};${Number(index)}`)
    for (const which of this.#colors.keys())
      if (which.startsWith(`${PALETTE};`) && (given?.includes(which) ?? true)) this.#colors.delete(which)
  }

  /** Further colors in one sequence apply to the next OSC numbers. */
  #setSpecial(first: number, data: string): void {
    for (const [index, color] of data.split(';').entries())
      if (SPECIAL_COLORS.includes(first + index) && COLOR.test(color))
        this.#colors.set(`${first + index}`, color)
  }

  #softReset(): void {
    this.#isCursorHidden = false
    this.#cursorStyle = 0
  }

  #reset(): void {
    this.#softReset()
    this.#mouseEncoding = undefined
  }
}

function isPaletteIndex(text: string): boolean {
  return /^\d{1,3}$/.test(text) && Number(text) < 256
}

function numberOf(param: number | number[] | undefined): number {
  return typeof param === 'number' ? param : 0
}
