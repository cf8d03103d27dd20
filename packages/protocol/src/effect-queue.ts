/**
 * Performs effects one after the other. One that is performed may lead to more at once, a consumer that answers within its call
 * say; those come behind what already waits.
 */
export class EffectQueue<E> {
  readonly #perform: (effect: E) => void
  readonly #settled: () => void
  readonly #waiting: E[] = []
  #isPerforming = false

  /** `settled` is called each time that nothing is left, and when an effect could not be performed. */
  constructor(perform: (effect: E) => void, settled: () => void) {
    this.#perform = perform
    this.#settled = settled
  }

  /** Performs these and whatever they lead to; within a call of `perform` they wait for its end. */
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
