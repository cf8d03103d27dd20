import { limits } from '@sandwire/protocol'
import type { ITerminalOptions, ITheme } from '@xterm/xterm'

/** WCAG contrast of readable text. */
export const MIN_CONTRAST = 4.5

/**
 * Colors of a terminal. Black is dark and white is light, because programs use them as backgrounds too. All other
 * colors are readable on the terminal's own background; where contrast is missing, it is corrected when drawing.
 */
export type Palette = ITheme

export const DARK: Palette = {
  background: '#14161b',
  foreground: '#d8dee9',
  cursor: '#e8b04b',
  cursorAccent: '#14161b',
  selectionBackground: '#3b4a63',
  black: '#0b0d10',
  red: '#f0787f',
  green: '#8cc98f',
  yellow: '#e5c07b',
  blue: '#7ab3f5',
  magenta: '#cf9bea',
  cyan: '#62c5cf',
  white: '#c8ccd4',
  brightBlack: '#8b93a1',
  brightRed: '#ff9aa0',
  brightGreen: '#a9e0ab',
  brightYellow: '#f3d58f',
  brightBlue: '#a1cbff',
  brightMagenta: '#e2b8f7',
  brightCyan: '#8fe0e8',
  brightWhite: '#ffffff',
}

export const LIGHT: Palette = {
  background: '#fbfbfa',
  foreground: '#24292f',
  cursor: '#9a5b00',
  cursorAccent: '#fbfbfa',
  selectionBackground: '#cfe0f7',
  black: '#24292f',
  red: '#b3261e',
  green: '#1a6b2c',
  yellow: '#7a5200',
  blue: '#0b57c2',
  magenta: '#8430a8',
  cyan: '#0f6673',
  white: '#dfe2e6',
  brightBlack: '#57606a',
  brightRed: '#c4352c',
  brightGreen: '#1f7a34',
  brightYellow: '#8a5d00',
  brightBlue: '#1665d8',
  brightMagenta: '#9440ba',
  brightCyan: '#137280',
  brightWhite: '#ffffff',
}

/** Appearance and behavior of a terminal. */
export interface Appearance {
  readonly palette: Palette
  readonly fontFamily: string
  readonly fontSize: number
  readonly lineHeight: number
  readonly scrollback: number
  readonly cursorBlink: boolean
  readonly screenReader: boolean
}

/** The defaults. */
export const DEFAULT_APPEARANCE: Appearance = {
  palette: DARK,
  fontFamily: '"JetBrains Mono", "Cascadia Code", "DejaVu Sans Mono", Menlo, Consolas, monospace',
  fontSize: 14,
  lineHeight: 1.15,
  scrollback: limits.SCROLLBACK_LINES,
  cursorBlink: true,
  screenReader: false,
}

/** The xterm.js options that follow from the appearance and from whether input is possible. */
export class XtermSettings {
  isReadOnly = false
  #appearance: Appearance

  constructor(appearance: Partial<Appearance>) {
    this.#appearance = { ...DEFAULT_APPEARANCE, ...appearance }
  }

  get appearance(): Appearance {
    return this.#appearance
  }

  /** Options that are not given keep their value. */
  change(part: Partial<Appearance>): void {
    this.#appearance = { ...this.#appearance, ...part }
  }

  get options(): ITerminalOptions {
    const { palette, screenReader, cursorBlink, ...rest } = this.#appearance
    return {
      ...rest,
      theme: palette,
      screenReaderMode: screenReader,
      disableStdin: this.isReadOnly,
      // A blinking cursor invites input.
      cursorBlink: cursorBlink && !this.isReadOnly,
    }
  }
}
