import { awaitReadable, yieldProcessor } from '../linux/libc.ts'

/** How long others are let run, in between looks. */
const YIELD_MS = 0.06
/** How long is slept after that, for a program that thinks or runs on another processor. */
const SLEEP_MS = 0.15
/** A wait that took this long met a machine with more to do than processors. */
const BUSY_MS = 0.4
/** How long no answer is waited for after that, and after many such waits in a row. */
const FIRST_PAUSE_MS = 25
const LONGEST_PAUSE_MS = 5_000
/** Keys that are passed over at most after answers that did not come in time. */
const MAX_SKIPS = 64

/** What waiting is made of. */
export interface Patience {
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly yieldProcessor: () => void
  /** Sleeps until the descriptor can be read, or the time is over. */
  readonly sleepFor: (fd: number, ms: number) => void
}

export function createPatience(now: () => number): Patience {
  return { now, yieldProcessor, sleepFor: (fd, ms) => awaitReadable(fd, Math.round(ms * 1e6)) }
}

/** How much a terminal is worth waiting for: one that lets keys go unanswered is asked ever less often. */
export class Attention {
  #skips = 0
  #left = 0

  /** Whether the next key is worth a wait. */
  next(): boolean {
    if (this.#left === 0) return true
    this.#left -= 1
    return false
  }

  note(isAnswered: boolean): void {
    this.#skips = isAnswered ? 0 : Math.min(MAX_SKIPS, Math.max(1, this.#skips * 2))
    this.#left = this.#skips
  }
}

/**
 * Waits a moment for what a program answers to a key. To be woken by the event loop instead costs more than most answers
 * take, and the processor is given to the program meanwhile. One wait per turn of the loop, and none while the machine has
 * more to do than processors: then the others are not kept waiting.
 */
export class AnswerWait {
  readonly #patience: Patience
  #isSpent = false
  #pausedUntilMs = Number.NEGATIVE_INFINITY
  #pauseMs = FIRST_PAUSE_MS

  constructor(patience: Patience) {
    this.#patience = patience
  }

  /** Takes this turn's wait, if there is one and the terminal is worth it. */
  begin(attention: Attention): boolean {
    if (this.#isSpent || this.#patience.now() < this.#pausedUntilMs || !attention.next()) return false
    this.#isSpent = true
    return true
  }

  endTurn(): void {
    this.#isSpent = false
  }

  /** Waits until `look` says that it has found something, or the time is over. */
  await(attention: Attention, fd: number, look: () => boolean): void {
    const { now, yieldProcessor: yieldOnce, sleepFor } = this.#patience
    const startMs = now()
    let isAnswered = false
    do {
      yieldOnce()
      isAnswered = look()
    } while (!isAnswered && now() < startMs + YIELD_MS)
    if (!isAnswered) {
      sleepFor(fd, SLEEP_MS)
      isAnswered = look()
    }
    attention.note(isAnswered)
    this.#took(startMs, now())
  }

  #took(startMs: number, endMs: number): void {
    if (endMs < startMs + BUSY_MS) {
      this.#pauseMs = Math.max(FIRST_PAUSE_MS, this.#pauseMs / 2)
      return
    }
    this.#pausedUntilMs = endMs + this.#pauseMs
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs * 4)
  }
}
