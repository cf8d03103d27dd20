import { WebglAddon } from '@xterm/addon-webgl'
import type { Terminal } from '@xterm/xterm'

const GROUND = '--sandwire-ground'

/** Text in reverse video with the default colors, except the cursor and text with its own color. */
const RULE = `.xterm-rows .xterm-bg-257:not([class*='xterm-fg-'], .xterm-cursor) { color: var(${GROUND}) !important; }`

/**
 * Draws reverse video in the background color. The DOM renderer of xterm.js 6.0 with a minimum contrast makes it gray
 * instead (related: xtermjs/xterm.js#3846).
 */
export class ReverseVideo {
  readonly #terminal: Terminal

  constructor(terminal: Terminal) {
    this.#terminal = terminal
  }

  /** Call once the terminal has an element. */
  begin(): void {
    const style = document.createElement('style')
    style.textContent = RULE
    this.#terminal.element?.append(style)
    this.redraw()
  }

  /** Follows a palette change. */
  redraw(): void {
    this.#terminal.element?.style.setProperty(GROUND, this.#terminal.options.theme?.background ?? '#000000')
  }
}

/** False for software WebGL, which is slow enough to delay output. */
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

/** Uses WebGL where it is fast; after a context loss the DOM renderer takes over. */
export function loadWebgl(terminal: Terminal): void {
  if (!hasFastWebgl()) return
  try {
    const webgl = new WebglAddon()
    webgl.onContextLoss(() => webgl.dispose())
    terminal.loadAddon(webgl)
  } catch {
    // No WebGL: xterm.js uses its DOM renderer.
  }
}
