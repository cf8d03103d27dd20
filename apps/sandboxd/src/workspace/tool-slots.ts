import { SandwireError } from '@sandwire/protocol'

export interface SlotLimits {
  /** How many go on at a time. */
  readonly maxRunning: number
  /** Requests that wait for one of them to end; more are refused. */
  readonly maxWaiting: number
  /** What they are refused with. */
  readonly refusal: string
}

/** Ends a turn; more than once does nothing. */
export type EndTurn = () => void

interface Waiter {
  readonly admit: () => void
}

/** Lets a bounded number of something go on at a time, in the order in which they were asked for. */
export class ToolSlots {
  readonly #limits: SlotLimits
  readonly #waiting = new Set<Waiter>()
  #running = 0

  constructor(limits: SlotLimits) {
    this.#limits = limits
  }

  /** Resolves when it is one's turn. */
  async take(signal?: AbortSignal): Promise<EndTurn> {
    signal?.throwIfAborted()
    if (this.#running < this.#limits.maxRunning) this.#running += 1
    else await this.#wait(signal)
    let isOver = false
    return () => {
      if (!isOver) this.#leave()
      isOver = true
    }
  }

  #wait(signal: AbortSignal | undefined): Promise<void> {
    if (this.#waiting.size >= this.#limits.maxWaiting)
      throw new SandwireError('rate_limited', this.#limits.refusal)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter: Waiter = {
      admit: () => {
        signal?.removeEventListener('abort', giveUp)
        resolve()
      },
    }
    const giveUp = (): void => {
      // A turn that was handed over meanwhile is given back by whoever got it.
      if (this.#waiting.delete(waiter)) reject(signal?.reason)
    }
    signal?.addEventListener('abort', giveUp, { once: true })
    this.#waiting.add(waiter)
    return promise
  }

  /** The turn goes to who has waited longest. */
  #leave(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#running -= 1
      return
    }
    this.#waiting.delete(next)
    next.admit()
  }
}
