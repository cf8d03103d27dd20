import { Random } from '../random.ts'

interface Event {
  readonly atMs: number
  /** Random tie-break, so that seeds cover every order of simultaneous events. */
  readonly tie: number
  readonly run: () => void
}

/** Virtual time and seeded randomness. Events run in order of time; only they advance the clock. */
export class Scheduler {
  readonly random: Random
  #nowMs = 0
  /** Binary heap, earliest event first. */
  readonly #heap: Event[] = []
  #steps = 0

  constructor(seed: number) {
    this.random = new Random(seed)
  }

  get nowMs(): number {
    return this.#nowMs
  }

  get steps(): number {
    return this.#steps
  }

  after(delayMs: number, run: () => void): void {
    const event = { atMs: this.#nowMs + Math.max(0, delayMs), tie: this.random.next(), run }
    this.#heap.push(event)
    this.#siftUp(this.#heap.length - 1)
  }

  /** Runs the next event; returns false when there is none before `untilMs`. */
  step(untilMs: number): boolean {
    const first = this.#heap[0]
    if (first === undefined || first.atMs > untilMs) return false
    const last = this.#heap.pop()
    if (last !== undefined && this.#heap.length > 0) {
      this.#heap[0] = last
      this.#siftDown(0)
    }
    this.#nowMs = first.atMs
    this.#steps += 1
    first.run()
    return true
  }

  #isBefore(a: number, b: number): boolean {
    const left = this.#heap[a]
    const right = this.#heap[b]
    if (left === undefined || right === undefined) return false
    return left.atMs < right.atMs || (left.atMs === right.atMs && left.tie < right.tie)
  }

  #swap(a: number, b: number): void {
    const left = this.#heap[a]
    const right = this.#heap[b]
    if (left === undefined || right === undefined) return
    this.#heap[a] = right
    this.#heap[b] = left
  }

  #siftUp(from: number): void {
    let index = from
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!this.#isBefore(index, parent)) return
      this.#swap(index, parent)
      index = parent
    }
  }

  #siftDown(from: number): void {
    let index = from
    for (;;) {
      let least = index
      for (const child of [2 * index + 1, 2 * index + 2]) if (this.#isBefore(child, least)) least = child
      if (least === index) return
      this.#swap(index, least)
      index = least
    }
  }
}
