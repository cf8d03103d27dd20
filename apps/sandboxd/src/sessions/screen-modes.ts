import type { Terminal } from '@xterm/headless'

/** Rows that scroll, counted from 1, both included. */
interface ScrollRegion {
  readonly top: number
  readonly bottom: number
}

const SHOW_CURSOR = 25
/** Private modes that say how mouse events are written; of these one is in force. */
const MOUSE_ENCODINGS: readonly number[] = [1006, 1016]
const ALTERNATE_SCREENS: readonly number[] = [47, 1047, 1049]
/** A title is shown in a tab; a longer one is not worth its bytes. */
const MAX_TITLE_CHARS = 1024

/**
 * Follows the state of a terminal that its serializer leaves out: whether the cursor shows and how, how the mouse is
 * reported, which rows scroll, the title. Listens to the same bytes, and changes nothing about how they are parsed.
 */
export class ScreenModes {
  readonly #terminal: Terminal
  #isCursorHidden = false
  #cursorStyle = 0
  #mouseEncoding: number | undefined
  #title = ''
  /** Each of the two screens has its own; undefined means all rows. */
  readonly #regions: Record<'normal' | 'alternate', ScrollRegion | undefined> = {
    normal: undefined,
    alternate: undefined,
  }

  constructor(terminal: Terminal) {
    this.#terminal = terminal
    const { parser } = terminal
    const heard = (handle: () => void): boolean => {
      handle()
      return false
    }
    parser.registerCsiHandler({ prefix: '?', final: 'h' }, (params) => heard(() => this.#set(params, true)))
    parser.registerCsiHandler({ prefix: '?', final: 'l' }, (params) => heard(() => this.#set(params, false)))
    parser.registerCsiHandler({ final: 'r' }, (params) => heard(() => this.#scroll(params)))
    parser.registerCsiHandler({ intermediates: ' ', final: 'q' }, (params) =>
      heard(() => (this.#cursorStyle = whole(params[0]))),
    )
    parser.registerCsiHandler({ intermediates: '!', final: 'p' }, () => heard(() => this.#resetSoftly()))
    parser.registerEscHandler({ final: 'c' }, () => heard(() => this.#reset()))
    terminal.onTitleChange((title) => (this.#title = title.slice(0, MAX_TITLE_CHARS)))
    terminal.onResize(() => {
      this.#regions.normal = undefined
      this.#regions.alternate = undefined
    })
  }

  /** What follows the serialized screen, to bring another terminal into the same state. */
  serialize(): string {
    const title = this.#title === '' ? '' : `\x1b]2;${this.#title}\x07`
    const encoding = this.#mouseEncoding === undefined ? '' : `\x1b[?${this.#mouseEncoding}h`
    const style = this.#cursorStyle === 0 ? '' : `\x1b[${this.#cursorStyle} q`
    return title + this.#serializeRegion() + encoding + style + (this.#isCursorHidden ? '\x1b[?25l' : '')
  }

  /** Setting a region or origin mode moves the cursor, so its place is stated again behind them. */
  #serializeRegion(): string {
    const { buffer, modes } = this.#terminal
    const { type, cursorX, cursorY } = buffer.active
    const region = this.#regions[type]
    if (region === undefined && !modes.originMode) return ''
    const origin = modes.originMode ? (region?.top ?? 1) : 1
    const set = region === undefined ? '' : `\x1b[${region.top};${region.bottom}r`
    return `${set}\x1b[${cursorY + 2 - origin};${cursorX + 1}H`
  }

  #set(params: readonly (number | number[])[], isSet: boolean): void {
    for (const param of params) {
      const mode = whole(param)
      if (mode === SHOW_CURSOR) this.#isCursorHidden = !isSet
      else if (MOUSE_ENCODINGS.includes(mode)) this.#mouseEncoding = isSet ? mode : undefined
      else if (ALTERNATE_SCREENS.includes(mode)) this.#regions.alternate = undefined
    }
  }

  #scroll(params: readonly (number | number[])[]): void {
    const { buffer, rows } = this.#terminal
    const top = whole(params[0]) || 1
    const asked = whole(params[1])
    const bottom = asked === 0 || asked > rows ? rows : asked
    if (bottom <= top) return
    this.#regions[buffer.active.type] = top === 1 && bottom === rows ? undefined : { top, bottom }
  }

  #resetSoftly(): void {
    this.#isCursorHidden = false
    this.#regions[this.#terminal.buffer.active.type] = undefined
  }

  #reset(): void {
    this.#isCursorHidden = false
    this.#cursorStyle = 0
    this.#mouseEncoding = undefined
    this.#regions.normal = undefined
    this.#regions.alternate = undefined
  }
}

function whole(param: number | number[] | undefined): number {
  return typeof param === 'number' ? param : 0
}
