import type { ITheme } from '@xterm/xterm'

/** Contrast of text that everybody can read. */
export const MIN_CONTRAST = 4.5

/**
 * Colors of a terminal. They are what they are called, as programs use them for grounds too: black is dark and white is light. On the
 * terminal's own background every other one has the contrast of text; what lacks it there or elsewhere gets it when it is drawn.
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
