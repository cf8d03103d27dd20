/** The longest delay of a timer; a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** A timer that can be rescheduled cheaply. */
export class Alarm {
  readonly #onAlarm: () => void
  #timer: { readonly id: ReturnType<typeof setTimeout>; readonly atMs: number } | undefined

  constructor(fire: () => void) {
    this.#onAlarm = fire
  }

  /** Fires at this time or earlier; never when it is undefined. */
  set(atMs: number | undefined, nowMs: number): void {
    // Firing early costs less than rescheduling for every frame.
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
