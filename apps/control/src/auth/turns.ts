/** How often somebody who waits looks whether it is their turn. */
const LOOK_MS = 20

/**
 * Lets no more than so many do something at once; the others wait for their turn. A request that is canceled runs no code at
 * its end, so a turn that nobody gave back ends by the clock.
 */
export class Turns {
  readonly #max: number
  readonly #lifeMs: number
  readonly #nowMs: () => number
  readonly #taken = new Map<symbol, number>()

  constructor(max: number, lifeMs: number, nowMs: () => number) {
    this.#max = max
    this.#lifeMs = lifeMs
    this.#nowMs = nowMs
  }

  /** Does the work when it is its turn; throws what `late` makes when that does not come in the life of a turn. */
  async take<T>(work: () => Promise<T>, late: () => Error): Promise<T> {
    const startedMs = this.#nowMs()
    while (!this.#isFree()) {
      if (this.#nowMs() - startedMs >= this.#lifeMs) throw late()
      // By a timer of its own: what another request would call may never be called.
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
    const turn = Symbol('turn')
    this.#taken.set(turn, this.#nowMs())
    try {
      return await work()
    } finally {
      this.#taken.delete(turn)
    }
  }

  #isFree(): boolean {
    const nowMs = this.#nowMs()
    for (const [turn, takenMs] of this.#taken) if (nowMs - takenMs >= this.#lifeMs) this.#taken.delete(turn)
    return this.#taken.size < this.#max
  }
}
