import type { ITerminalOptions } from '@xterm/xterm'
import { limits } from '@sandwire/protocol'
import { DARK, type Palette } from './palette.ts'

/** How a terminal looks and feels. */
export interface Look {
  readonly palette: Palette
  readonly fontFamily: string
  readonly fontSize: number
  readonly lineHeight: number
  readonly scrollback: number
  readonly cursorBlink: boolean
  readonly screenReader: boolean
}

/** The look of a terminal that was told nothing of it. */
export const DEFAULT_LOOK: Look = {
  palette: DARK,
  fontFamily: '"JetBrains Mono", "Cascadia Code", "DejaVu Sans Mono", Menlo, Consolas, monospace',
  fontSize: 14,
  lineHeight: 1.15,
  scrollback: limits.SCROLLBACK_LINES,
  cursorBlink: true,
  screenReader: false,
}

/** What xterm.js is to be set to: the look as all that was asked for makes it, and whether anybody may type. */
export class Appearance {
  isReadOnly = false
  #look: Look

  constructor(look: Partial<Look>) {
    this.#look = { ...DEFAULT_LOOK, ...look }
  }

  get look(): Look {
    return this.#look
  }

  /** What is not given stays as it is. */
  change(part: Partial<Look>): void {
    this.#look = { ...this.#look, ...part }
  }

  get options(): ITerminalOptions {
    const { palette, screenReader, cursorBlink, ...rest } = this.#look
    return {
      ...rest,
      theme: palette,
      screenReaderMode: screenReader,
      disableStdin: this.isReadOnly,
      // A cursor that blinks asks for keys.
      cursorBlink: cursorBlink && !this.isReadOnly,
    }
  }
}
