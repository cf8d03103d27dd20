import { SandwireError } from '@sandwire/protocol'

export interface SemaphoreLimits {
  /** Units that may be held at a time. */
  readonly capacity: number
  /** Requests that may wait; more are refused. */
  readonly maxWaiting: number
  /** Longest wait, shorter than the timeout of the client; unlimited when absent. */
  readonly waitMs?: number
  /** Message of the `rate_limited` error, and when to retry. */
  readonly refusal: string
  readonly retryAfterMs?: number
}

/** Returns the units; calling it again does nothing. */
export type Release = () => void

interface Waiter {
  readonly units: number
  readonly admit: () => void
}

/** Limits what runs or is held at a time. Requests that do not fit wait and are admitted in order of arrival. */
export class Semaphore {
  readonly #limits: SemaphoreLimits
  readonly #waiting = new Set<Waiter>()
  #held = 0

  constructor(limits: SemaphoreLimits) {
    this.#limits = limits
  }

  /** Units that are held. */
  get held(): number {
    return this.#held
  }

  /** Resolves when the units are available; more than the capacity counts as all of it. Throws `rate_limited`. */
  async acquire(wanted: number, signal?: AbortSignal): Promise<Release> {
    signal?.throwIfAborted()
    const units = Math.min(wanted, this.#limits.capacity)
    if (this.#waiting.size === 0 && this.#fits(units)) this.#held += units
    else await this.#wait(units, signal)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      this.#held -= units
      this.#admit()
    }
  }

  #fits(units: number): boolean {
    return this.#held + units <= this.#limits.capacity
  }

  #wait(units: number, signal: AbortSignal | undefined): Promise<void> {
    const { maxWaiting, waitMs } = this.#limits
    if (this.#waiting.size >= maxWaiting) throw this.#refusal()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const settle = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
    const waiter: Waiter = {
      units,
      admit: () => {
        settle()
        resolve()
      },
    }
    const giveUp = (reason: unknown): void => {
      if (!this.#waiting.delete(waiter)) return
      settle()
      reject(reason)
      // Smaller requests after it may fit now.
      this.#admit()
    }
    const onAbort = (): void => giveUp(signal?.reason)
    const timer = waitMs === undefined ? undefined : setTimeout(() => giveUp(this.#refusal()), waitMs)
    signal?.addEventListener('abort', onAbort, { once: true })
    this.#waiting.add(waiter)
    return promise
  }

  #admit(): void {
    for (const waiter of this.#waiting) {
      if (!this.#fits(waiter.units)) return
      this.#waiting.delete(waiter)
      this.#held += waiter.units
      waiter.admit()
    }
  }

  #refusal(): SandwireError {
    const { refusal, retryAfterMs } = this.#limits
    return new SandwireError('rate_limited', refusal, { retryAfterMs })
  }
}
