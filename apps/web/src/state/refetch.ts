/** Does something once at a time. Whoever wants it meanwhile gets it once more afterwards, all of them together. */
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
    // Also after one that failed, which is told to whoever waited for that one.
    const again = (): Promise<void> => {
      this.#next = undefined
      return this.run()
    }
    this.#next ??= this.#now.then(again, again)
    return this.#next
  }
}
