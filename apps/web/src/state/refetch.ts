/** Runs one operation at a time. All calls during a run share one further run after it. */
export class Refetch {
  readonly #act: () => Promise<void>
  #now: Promise<void> | undefined
  #next: Promise<void> | undefined

  constructor(act: () => Promise<void>) {
    this.#act = act
  }

  run(): Promise<void> {
    if (this.#now === undefined) {
      this.#now = this.#act().finally(() => (this.#now = undefined))
      return this.#now
    }
    // Also after a failed run, whose error only its own callers get.
    const again = (): Promise<void> => {
      this.#next = undefined
      return this.run()
    }
    this.#next ??= this.#now.then(again, again)
    return this.#next
  }
}
