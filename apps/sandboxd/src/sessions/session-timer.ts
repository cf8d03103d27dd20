/** The longest that a timer takes; a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** Wakes a session when it asks to be, or a little earlier: that costs less than to set a timer anew for every frame. */
export class SessionTimer {
  readonly #now: () => number
  readonly #ring: () => void
  #timer: { readonly id: ReturnType<typeof setTimeout>; readonly atMs: number } | undefined

  constructor(now: () => number, ring: () => void) {
    this.#now = now
    this.#ring = ring
  }

  /** Undefined: not at all. */
  arm(atMs: number | undefined): void {
    if (this.#timer !== undefined && atMs !== undefined && this.#timer.atMs <= atMs) return
    if (this.#timer !== undefined) clearTimeout(this.#timer.id)
    this.#timer = undefined
    if (atMs === undefined) return
    const id = setTimeout(
      () => {
        this.#timer = undefined
        this.#ring()
      },
      Math.min(MAX_TIMER_MS, Math.max(0, Math.ceil(atMs - this.#now()))),
    )
    this.#timer = { id, atMs }
  }
}
