/** What is asked for one id, one after the other. */
interface Line<T> {
  /** Settles when all that was asked for so far is done. */
  tail: Promise<unknown>
  /** The start that was asked for last, unless something else was asked for since. */
  start: Promise<T> | undefined
  waiting: number
}

/** Gives every id a line of its own; a start is shared by all who ask for one while it lasts. */
export class Turns<T> {
  readonly #lines = new Map<string, Line<T>>()

  /** Runs work after all that was asked for this id before. */
  take<R>(id: string, work: () => Promise<R>): Promise<R> {
    const line = this.#lineOf(id)
    line.start = undefined
    return this.#queue(id, line, work)
  }

  /** Like `take`, but shares the start that was asked for last, unless something else was asked for since. */
  share(id: string, work: () => Promise<T>): Promise<T> {
    const line = this.#lineOf(id)
    if (line.start !== undefined) return line.start
    const result = this.#queue(id, line, work)
    line.start = result
    return result
  }

  #lineOf(id: string): Line<T> {
    const line: Line<T> = this.#lines.get(id) ?? { tail: Promise.resolve(), start: undefined, waiting: 0 }
    this.#lines.set(id, line)
    return line
  }

  #queue<R>(id: string, line: Line<T>, work: () => Promise<R>): Promise<R> {
    line.waiting += 1
    const result = this.#run(id, line, work)
    line.tail = Promise.allSettled([result])
    return result
  }

  async #run<R>(id: string, line: Line<T>, work: () => Promise<R>): Promise<R> {
    await line.tail
    try {
      return await work()
    } finally {
      line.waiting -= 1
      // A start that can be shared is the last in its line, so it goes with the line.
      if (line.waiting === 0) this.#lines.delete(id)
    }
  }
}
