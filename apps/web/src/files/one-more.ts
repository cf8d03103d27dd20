/** Does something once at a time. Whoever wants it meanwhile gets it once more afterwards, all of them together. */
export class OneMore {
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
    this.#next ??= this.#now.then(() => {
      this.#next = undefined
      return this.run()
    })
    return this.#next
  }
}
