/**
 * Turns completions that come in any order into a place up to which everything is complete.
 * Consumers may finish chunks late and out of turn; an acknowledgement must not run ahead of them.
 */
export class Consumption {
  readonly #pending: { end: number; isDone: boolean }[] = []
  readonly #advanced: (end: number) => void

  constructor(advanced: (end: number) => void) {
    this.#advanced = advanced
  }

  /** Adds a chunk that ends at `end`; the returned function says that it is done. */
  add(end: number): () => void {
    const entry = { end, isDone: false }
    this.#pending.push(entry)
    return () => {
      if (entry.isDone) return
      entry.isDone = true
      this.#advance()
    }
  }

  #advance(): void {
    let reached: number | undefined
    while (this.#pending[0]?.isDone === true) reached = this.#pending.shift()?.end
    if (reached !== undefined) this.#advanced(reached)
  }
}
