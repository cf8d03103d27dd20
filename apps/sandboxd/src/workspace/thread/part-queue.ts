/** Parts of an answer on their way to whoever reads them, and what comes behind the last. Bounded by who sends. */
export class PartQueue<Part, Result> {
  readonly #parts: Part[] = []
  #end: { readonly result: Result } | { readonly error: Error } | undefined
  #wake: (() => void) | undefined

  add(part: Part): void {
    this.#parts.push(part)
    this.#wake?.()
  }

  finish(result: Result): void {
    this.#end ??= { result }
    this.#wake?.()
  }

  fail(error: Error): void {
    this.#end ??= { error }
    this.#wake?.()
  }

  /** After the last part; undefined before. */
  get result(): Result | undefined {
    return this.#end !== undefined && 'result' in this.#end ? this.#end.result : undefined
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Part, void, void> {
    for (;;) {
      const part = this.#parts.shift()
      if (part !== undefined) yield part
      else if (this.#end === undefined) await new Promise<void>((resolve) => (this.#wake = resolve))
      else if ('error' in this.#end) throw this.#end.error
      else return
    }
  }
}
