import type { Terminal } from '@xterm/headless'

const SHOW_CURSOR = 25
const BLINK_CURSOR = 12
/** Private modes that say how mouse events are written; of these one is in force. */
const MOUSE_ENCODINGS: readonly number[] = [1006, 1016]
/** A title is shown in a tab; a longer one is not worth its bytes. */
const MAX_TITLE_CHARS = 1024
const COLOR = /^(?:#[\da-f]{3,12}|rgb:[\da-f]{1,4}(?:\/[\da-f]{1,4}){2})$/i
const PALETTE = 4
/** The colors of text, ground and cursor, by the number of the sequence that sets them. */
const SPECIAL_COLORS: readonly number[] = [10, 11, 12]
/** A color is given back by the sequence with this much more. */
const RESTORE = 100

/**
 * Follows the state of a terminal that can only be heard of: whether the cursor shows and how, how the mouse is reported, the title,
 * the colors. Listens to the same bytes, and changes nothing about how they are parsed.
 */
export class ScreenModes {
  #isCursorHidden = false
  #cursorStyle = 0
  #isBlinking: boolean | undefined
  #mouseEncoding: number | undefined
  #title = ''
  /** By what stands before them in the sequence: `4;1` or `10`. */
  readonly #colors = new Map<string, string>()

  constructor(terminal: Terminal) {
    const { parser } = terminal
    const heard = (handle: () => void): boolean => {
      handle()
      return false
    }
    parser.registerCsiHandler({ prefix: '?', final: 'h' }, (params) => heard(() => this.#set(params, true)))
    parser.registerCsiHandler({ prefix: '?', final: 'l' }, (params) => heard(() => this.#set(params, false)))
    parser.registerCsiHandler({ intermediates: ' ', final: 'q' }, (params) =>
      heard(() => (this.#cursorStyle = whole(params[0]))),
    )
    parser.registerCsiHandler({ intermediates: '!', final: 'p' }, () => heard(() => this.#resetSoftly()))
    parser.registerEscHandler({ final: 'c' }, () => heard(() => this.#reset()))
    parser.registerOscHandler(PALETTE, (data) => heard(() => this.#setPalette(data)))
    parser.registerOscHandler(PALETTE + RESTORE, (data) => heard(() => this.#restorePalette(data)))
    for (const which of SPECIAL_COLORS) {
      parser.registerOscHandler(which, (data) => heard(() => this.#setSpecial(which, data)))
      parser.registerOscHandler(which + RESTORE, () => heard(() => this.#colors.delete(`${which}`)))
    }
    terminal.onTitleChange((title) => (this.#title = title.slice(0, MAX_TITLE_CHARS)))
  }

  /** What brings another terminal into the same state. Moves no cursor. */
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
      const mode = whole(param)
      if (mode === SHOW_CURSOR) this.#isCursorHidden = !isSet
      else if (mode === BLINK_CURSOR) this.#isBlinking = isSet
      else if (MOUSE_ENCODINGS.includes(mode)) this.#mouseEncoding = isSet ? mode : undefined
    }
  }

  /** Pairs of a number and a color, which may also be a question. */
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

  /** Further colors in one sequence belong to the next numbers. */
  #setSpecial(first: number, data: string): void {
    for (const [index, color] of data.split(';').entries())
      if (SPECIAL_COLORS.includes(first + index) && COLOR.test(color))
        this.#colors.set(`${first + index}`, color)
  }

  #resetSoftly(): void {
    this.#isCursorHidden = false
    this.#cursorStyle = 0
  }

  #reset(): void {
    this.#resetSoftly()
    this.#mouseEncoding = undefined
  }
}

function isPaletteIndex(text: string): boolean {
  return /^\d{1,3}$/.test(text) && Number(text) < 256
}

function whole(param: number | number[] | undefined): number {
  return typeof param === 'number' ? param : 0
}
