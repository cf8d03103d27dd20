/** Longest time that queued work takes in one turn of the event loop, so that input and output of sessions are not delayed. */
const SLICE_MS = 2

/** Runs tasks in order, in later turns of the event loop, some in each. */
export class SlicedQueue {
  readonly #now: () => number
  #tasks: (() => void)[] = []
  /** The first task that has not run. */
  #next = 0

  constructor(now: () => number) {
    this.#now = now
  }

  push(task: () => void): void {
    if (this.#tasks.push(task) === 1) this.#schedule()
  }

  #schedule(): void {
    setImmediate(() => this.#run())
  }

  #run(): void {
    const endMs = this.#now() + SLICE_MS
    try {
      do {
        const task = this.#tasks[this.#next]
        this.#next += 1
        task?.()
      } while (this.#next < this.#tasks.length && this.#now() < endMs)
    } finally {
      if (this.#next < this.#tasks.length) this.#schedule()
      else {
        this.#tasks = []
        this.#next = 0
      }
    }
  }
}
