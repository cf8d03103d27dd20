/** What is done to one thing, one after the other; a start that waits is shared by all who ask for one. */
interface Line<T> {
  tail: Promise<void>
  start: Promise<T> | undefined
  waiting: number
}

/** Gives every id a line of its own. */
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
    const start = this.#queue(id, line, work)
    line.start = start
    return start
  }

  #lineOf(id: string): Line<T> {
    const line: Line<T> = this.#lines.get(id) ?? { tail: Promise.resolve(), start: undefined, waiting: 0 }
    this.#lines.set(id, line)
    return line
  }

  #queue<R>(id: string, line: Line<T>, work: () => Promise<R>): Promise<R> {
    line.waiting += 1
    const result = line.tail.then(work)
    line.tail = this.#leave(id, line, result)
    return result
  }

  async #leave(id: string, line: Line<T>, work: Promise<unknown>): Promise<void> {
    await Promise.allSettled([work])
    line.waiting -= 1
    if (line.start === work) line.start = undefined
    if (line.waiting === 0) this.#lines.delete(id)
  }
}
