/** Tracks the offset up to which all output is consumed. Consumers may finish chunks late and out of order. */
export class Consumption {
  readonly #pending: { end: number; isDone: boolean }[] = []
  readonly #advanced: (end: number) => void

  constructor(advanced: (end: number) => void) {
    this.#advanced = advanced
  }

  /** Adds a chunk that ends at `end`; the returned function marks it as consumed. */
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
