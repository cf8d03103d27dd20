import { awaitReadable, yieldProcessor } from '../linux/libc.ts'

/** How long the processor is yielded between polls. */
const YIELD_MS = 0.06
/** How long to sleep after that, for a program that takes longer or runs on another processor. */
const SLEEP_MS = 0.15
/** A wait that took this long means that the machine has more runnable threads than processors. */
const BUSY_MS = 0.4
/** How long no wait is made after that, and after many such waits in a row. */
const FIRST_PAUSE_MS = 25
const LONGEST_PAUSE_MS = 5_000
/** Most keystrokes in a row without a wait, after echoes that were late. */
const MAX_SKIPS = 64

/** System calls of a wait. */
export interface WaitCalls {
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly yieldProcessor: () => void
  /** Sleeps until the descriptor can be read, or the time is over. */
  readonly sleepFor: (fd: number, ms: number) => void
}

export function createWaitCalls(now: () => number): WaitCalls {
  return { now, yieldProcessor, sleepFor: (fd, ms) => awaitReadable(fd, Math.round(ms * 1e6)) }
}

/** Whether a terminal's program echoed lately: after each late echo, twice as many keystrokes are not waited for. */
export class EchoHistory {
  #skips = 0
  #left = 0

  /** True when the next keystroke is worth a wait. */
  shouldWait(): boolean {
    if (this.#left === 0) return true
    this.#left -= 1
    return false
  }

  record(isEchoed: boolean): void {
    this.#skips = isEchoed ? 0 : Math.min(MAX_SKIPS, Math.max(1, this.#skips * 2))
    this.#left = this.#skips
  }
}

/**
 * Waits a moment for the echo of a keystroke and yields the processor to the program meanwhile, because a wake-up through the
 * event loop takes longer than most echoes. One wait per turn of the loop, and none while the machine is overloaded, so that
 * other sessions are not delayed.
 */
export class EchoWait {
  readonly #calls: WaitCalls
  #hasWaited = false
  #pausedUntilMs = Number.NEGATIVE_INFINITY
  #pauseMs = FIRST_PAUSE_MS

  constructor(calls: WaitCalls) {
    this.#calls = calls
  }

  /** Claims this turn's wait; false when there is none, or the terminal rarely echoes in time. */
  begin(history: EchoHistory): boolean {
    if (this.#hasWaited || this.#calls.now() < this.#pausedUntilMs || !history.shouldWait()) return false
    this.#hasWaited = true
    return true
  }

  endTurn(): void {
    this.#hasWaited = false
  }

  /** Waits until `poll` returns true, or the time is over. */
  await(history: EchoHistory, fd: number, poll: () => boolean): void {
    const { now, yieldProcessor: yieldOnce, sleepFor } = this.#calls
    const startMs = now()
    let isEchoed = false
    do {
      yieldOnce()
      isEchoed = poll()
    } while (!isEchoed && now() < startMs + YIELD_MS)
    if (!isEchoed) {
      sleepFor(fd, SLEEP_MS)
      isEchoed = poll()
    }
    history.record(isEchoed)
    this.#adapt(startMs, now())
  }

  #adapt(startMs: number, endMs: number): void {
    if (endMs < startMs + BUSY_MS) {
      this.#pauseMs = Math.max(FIRST_PAUSE_MS, this.#pauseMs / 2)
      return
    }
    this.#pausedUntilMs = endMs + this.#pauseMs
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs * 4)
  }
}
