import { SandwireError } from '@sandwire/protocol'

export interface RoomLimits {
  /** Bytes of memory that may be taken at a time. */
  readonly maxBytes: number
  /** Requests that wait for some; more are refused. */
  readonly maxWaiting: number
  /** Longest that one waits, shorter than whoever asks for it does. */
  readonly waitMs: number
}

/** Gives what was taken back; more than once does nothing. */
export type GiveBack = () => void

interface Waiter {
  readonly bytes: number
  readonly admit: () => void
}

/** A few of the largest texts at a time: with what they become on their way they take a part of the smallest sandbox. */
const LIMITS: RoomLimits = { maxBytes: 96 * 1024 * 1024, maxWaiting: 256, waitMs: 10_000 }

/**
 * Room in memory for what is not streamed but held as a whole. Who asks for much waits until others have given it back, in the
 * order of asking: a page that opens forty large files at once gets them a little later, and takes nobody's terminal down.
 */
export class TextRoom {
  readonly #limits: RoomLimits
  readonly #waiting = new Set<Waiter>()
  #taken = 0

  constructor(limits: RoomLimits = LIMITS) {
    this.#limits = limits
  }

  /** Bytes that are taken. */
  get taken(): number {
    return this.#taken
  }

  /** Resolves when there is room; what is more than all of it counts as all of it. Throws `rate_limited`. */
  async take(wantedBytes: number, signal?: AbortSignal): Promise<GiveBack> {
    signal?.throwIfAborted()
    const bytes = Math.min(wantedBytes, this.#limits.maxBytes)
    if (this.#waiting.size === 0 && this.#fits(bytes)) this.#taken += bytes
    else await this.#wait(bytes, signal)
    let isBack = false
    return () => {
      if (isBack) return
      isBack = true
      this.#taken -= bytes
      this.#admit()
    }
  }

  #fits(bytes: number): boolean {
    return this.#taken + bytes <= this.#limits.maxBytes
  }

  #wait(bytes: number, signal: AbortSignal | undefined): Promise<void> {
    if (this.#waiting.size >= this.#limits.maxWaiting) throw full()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const settle = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
    const waiter: Waiter = {
      bytes,
      admit: () => {
        settle()
        resolve()
      },
    }
    const giveUp = (reason: unknown): void => {
      if (!this.#waiting.delete(waiter)) return
      settle()
      reject(reason)
      // It may have been in the way of smaller ones.
      this.#admit()
    }
    const onAbort = (): void => giveUp(signal?.reason)
    const timer = setTimeout(() => giveUp(full()), this.#limits.waitMs)
    signal?.addEventListener('abort', onAbort, { once: true })
    this.#waiting.add(waiter)
    return promise
  }

  /** Room goes to who has waited longest. */
  #admit(): void {
    for (const waiter of this.#waiting) {
      if (!this.#fits(waiter.bytes)) return
      this.#waiting.delete(waiter)
      this.#taken += waiter.bytes
      waiter.admit()
    }
  }
}

function full(): SandwireError {
  return new SandwireError('rate_limited', 'Cannot hold more large texts at once', { retryAfterMs: 1_000 })
}
