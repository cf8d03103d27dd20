import { WebglAddon } from '@xterm/addon-webgl'
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

/** Whether WebGL is more than an imitation by the processor, which takes so long for a frame that output waits for it. */
function hasFastWebgl(): boolean {
  const context = document
    .createElement('canvas')
    .getContext('webgl2', { failIfMajorPerformanceCaveat: true })
  if (context === null) return false
  const names = context.getExtension('WEBGL_debug_renderer_info')
  const name = String(context.getParameter(names?.UNMASKED_RENDERER_WEBGL ?? context.RENDERER))
  context.getExtension('WEBGL_lose_context')?.loseContext()
  return !/swiftshader|llvmpipe|softpipe|software|basic render/i.test(name)
}

/** Draws with the graphics card where there is one; a lost context leaves the slower renderer. */
export function loadWebgl(terminal: Terminal): void {
  if (!hasFastWebgl()) return
  try {
    const webgl = new WebglAddon()
    webgl.onContextLoss(() => webgl.dispose())
    terminal.loadAddon(webgl)
  } catch {
    // No WebGL here: xterm.js draws with elements.
  }
}
