/** The longest that a timer takes; a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** One timer that is set anew again and again. */
export class Alarm {
  readonly #onAlarm: () => void
  #timer: { readonly id: ReturnType<typeof setTimeout>; readonly atMs: number } | undefined

  constructor(fire: () => void) {
    this.#onAlarm = fire
  }

  /** Rings at this time or sooner; not at all when it is undefined. */
  set(atMs: number | undefined, nowMs: number): void {
    // A timer that fires too early costs less than setting it anew for every frame.
    if (this.#timer !== undefined && atMs !== undefined && this.#timer.atMs <= atMs) return
    if (this.#timer !== undefined) clearTimeout(this.#timer.id)
    this.#timer = undefined
    if (atMs === undefined) return
    const fire = (): void => {
      this.#timer = undefined
      this.#onAlarm()
    }
    const delayMs = Math.min(MAX_TIMER_MS, Math.max(0, Math.ceil(atMs - nowMs)))
    this.#timer = { id: setTimeout(fire, delayMs), atMs }
  }
}
