/**
 * Performs effects in order. Performing one may produce more, for example when a consumer responds within its callback; those
 * are appended to the queue.
 */
export class EffectQueue<E> {
  readonly #perform: (effect: E) => void
  readonly #settled: () => void
  readonly #waiting: E[] = []
  #isPerforming = false

  /** `settled` is called whenever the queue is empty, and after an effect has thrown. */
  constructor(perform: (effect: E) => void, settled: () => void) {
    this.#perform = perform
    this.#settled = settled
  }

  /** Performs these effects and those they produce; within a call of `perform` they are only queued. */
  run(effects: readonly E[]): void {
    for (const effect of effects) this.#waiting.push(effect)
    if (this.#isPerforming) return
    this.#isPerforming = true
    try {
      for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift())
        this.#perform(next)
    } finally {
      this.#isPerforming = false
      this.#settled()
    }
  }
}
