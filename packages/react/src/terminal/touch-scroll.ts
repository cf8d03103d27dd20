import type { Terminal } from '@xterm/xterm'

/** Movement that still counts as a tap. */
const SLOP_PX = 8
/** Window for measuring the speed. */
const RECENT_MS = 100
/** Time after which a glide has a third of its speed. */
const GLIDE_MS = 325

/** A touch position with its time. */
export interface FingerPosition {
  readonly x: number
  readonly y: number
  readonly atMs: number
}

/** The movement of one finger. */
export class Pan {
  readonly #start: FingerPosition
  #recent: readonly FingerPosition[]
  #kind: 'tap' | 'upright' | 'sideways' = 'tap'

  constructor(start: FingerPosition) {
    this.#start = start
    this.#recent = [start]
  }

  /** True when it scrolls vertically; a movement that started sideways never does. */
  get isUpright(): boolean {
    return this.#kind === 'upright'
  }

  /** Returns the vertical movement in pixels since the last call. */
  moveTo(place: FingerPosition): number {
    const last = this.#recent.at(-1) ?? this.#start
    if (this.#kind === 'tap') this.#kind = this.#kindAt(place)
    if (!this.isUpright) return 0
    this.#recent = [...this.#recent, place].filter(({ atMs }) => place.atMs - atMs <= RECENT_MS)
    return place.y - last.y
  }

  /** Speed at the end, in pixels per millisecond. */
  speedAt(nowMs: number): number {
    const recent = this.#recent.filter(({ atMs }) => nowMs - atMs <= RECENT_MS)
    const [first, last] = [recent[0], recent.at(-1)]
    if (!this.isUpright || first === undefined || last === undefined) return 0
    return last.atMs === first.atMs ? 0 : (last.y - first.y) / (last.atMs - first.atMs)
  }

  #kindAt({ x, y }: FingerPosition): 'tap' | 'upright' | 'sideways' {
    const [wide, high] = [Math.abs(x - this.#start.x), Math.abs(y - this.#start.y)]
    if (Math.max(wide, high) < SLOP_PX) return 'tap'
    return high >= wide ? 'upright' : 'sideways'
  }
}

/** The speed after a while of gliding. */
export function decaySpeed(speed: number, elapsedMs: number): number {
  return speed * Math.exp(-elapsedMs / GLIDE_MS)
}

/** Converts pixels to whole lines and carries the remainder. */
export class LineAccumulator {
  #rest = 0

  take(pixels: number, lineHeight: number): number {
    const all = this.#rest + pixels
    const lines = Math.trunc(all / lineHeight)
    this.#rest = all - lines * lineHeight
    return lines
  }
}

/** Minimum speeds in pixels per millisecond. */
const MIN_THROW = 0.3
const MIN_GLIDE = 0.02

/** True when the program handles the wheel: it enabled mouse tracking, or uses the alternate screen. */
function isForProgram({ modes, buffer }: Terminal): boolean {
  return !['none', 'x10'].includes(modes.mouseTrackingMode) || buffer.active.type === 'alternate'
}

function positionOf(touch: Touch): FingerPosition {
  return { x: touch.clientX, y: touch.clientY, atMs: performance.now() }
}

/**
 * Touch scrolling, which xterm.js 6.0 lacks (xtermjs/xterm.js#5489): through the scrollback, or as wheel events where
 * the program handles them. Taps stay clicks; sideways and two-finger gestures stay the browser's.
 */
class TouchScroll {
  readonly #terminal: Terminal
  readonly #element: HTMLElement
  #pan: Pan | undefined
  #lines = new LineAccumulator()
  #frame: number | undefined

  constructor(terminal: Terminal, element: HTMLElement) {
    this.#terminal = terminal
    this.#element = element
  }

  start(event: TouchEvent): void {
    const [touch] = event.touches
    const isOnScrollbar = event.target instanceof Element && event.target.closest('.scrollbar') !== null
    // A touch that stops a glide does nothing else.
    if (this.stopGlide() && event.cancelable) event.preventDefault()
    this.#pan = undefined
    if (touch === undefined || event.touches.length > 1 || isOnScrollbar) return
    this.#pan = new Pan(positionOf(touch))
    this.#lines = new LineAccumulator()
  }

  move(event: TouchEvent): void {
    const [touch] = event.touches
    if (this.#pan === undefined || touch === undefined) return
    const place = positionOf(touch)
    const pixels = this.#pan.moveTo(place)
    if (!this.#pan.isUpright) return
    if (event.cancelable) event.preventDefault()
    this.#scroll(pixels, place)
  }

  end(): void {
    const nowMs = performance.now()
    const speed = this.#pan?.speedAt(nowMs) ?? 0
    this.#pan = undefined
    if (Math.abs(speed) >= MIN_THROW && !isForProgram(this.#terminal)) this.#glide(speed, nowMs)
  }

  /** False when there is no glide. */
  stopGlide(): boolean {
    if (this.#frame === undefined) return false
    cancelAnimationFrame(this.#frame)
    this.#frame = undefined
    return true
  }

  #glide(speed: number, beforeMs: number): void {
    this.#frame = requestAnimationFrame((nowMs) => {
      this.#frame = undefined
      const elapsedMs = Math.max(0, nowMs - beforeMs)
      const next = decaySpeed(speed, elapsedMs)
      if (Math.abs(next) < MIN_GLIDE || !this.#element.isConnected) return
      this.#scroll(next * elapsedMs, { x: 0, y: 0, atMs: nowMs })
      this.#glide(next, nowMs)
    })
  }

  /** Moves the content with the finger. */
  #scroll(pixels: number, place: FingerPosition): void {
    const screen = this.#element.querySelector('.xterm-screen')
    if (screen === null || screen.clientHeight === 0) return
    const rest = pixels + this.#scrollAround(-pixels)
    const lines = -this.#lines.take(rest, screen.clientHeight / this.#terminal.rows)
    if (!isForProgram(this.#terminal)) return this.#terminal.scrollLines(lines)
    for (let left = Math.abs(lines); left > 0; left -= 1) this.#turnWheel(Math.sign(lines), place)
  }

  /** Scrolls the surrounding element first if the terminal does not fit into it; returns the distance. */
  #scrollAround(pixels: number): number {
    const around = this.#element.parentElement
    if (around === null) return 0
    const before = around.scrollTop
    around.scrollTop += pixels
    return around.scrollTop - before
  }

  #turnWheel(deltaY: number, { x, y }: FingerPosition): void {
    const place = { clientX: x, clientY: y, bubbles: true, cancelable: true }
    const deltaMode = WheelEvent.DOM_DELTA_LINE
    this.#element.dispatchEvent(new WheelEvent('wheel', { ...place, deltaY, deltaMode }))
  }
}

/** Enables touch scrolling for a terminal that has an element. */
export function scrollByTouch(terminal: Terminal): void {
  const { element } = terminal
  if (element === undefined) return
  const scroll = new TouchScroll(terminal, element)
  element.style.touchAction = 'pan-x pinch-zoom'
  element.addEventListener('touchstart', (event) => scroll.start(event), { passive: false })
  element.addEventListener('touchmove', (event) => scroll.move(event), { passive: false })
  element.addEventListener('touchend', () => scroll.end())
  element.addEventListener('touchcancel', () => scroll.end())
}
