import type { Terminal } from '@xterm/xterm'

const GROUND = '--sandwire-ground'

/**
 * Text in reverse video, of which xterm.js says only that its ground is the color of text. A cursor, and text that was given a color by
 * name, are as they are.
 */
const RULE = `.xterm-rows .xterm-bg-257:not([class*='xterm-fg-'], .xterm-cursor) { color: var(${GROUND}) !important; }`

/**
 * Draws reverse video in the color of the ground. Where xterm.js 6.0 draws with elements and there is a least contrast, it makes the
 * color of text readable on itself, which is a grey (xtermjs/xterm.js#3846 is about the same place).
 */
export class ReverseVideo {
  readonly #terminal: Terminal

  constructor(terminal: Terminal) {
    this.#terminal = terminal
  }

  /** To be called once there is an element. */
  begin(): void {
    const style = document.createElement('style')
    style.textContent = RULE
    this.#terminal.element?.append(style)
    this.redraw()
  }

  /** Follows another palette. */
  redraw(): void {
    this.#terminal.element?.style.setProperty(GROUND, this.#terminal.options.theme?.background ?? '#000000')
  }
}
