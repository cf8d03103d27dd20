/** Limits on what is awaited from descendants after the leader has exited. */
export interface DrainLimits {
  readonly drainMs: number
  readonly drainBytes: number
}

/**
 * Decides when output is cut after exit although somebody still holds the stream.
 *
 * Time counts only while unpaused and idle: each chunk and each resume starts it anew.
 */
export class DrainClock {
  readonly #limits: DrainLimits
  /** Start of the current idle stretch; undefined while stopped. */
  #idleSinceMs: number | undefined
  /** Output since exit. */
  #bytes = 0

  constructor(limits: DrainLimits) {
    this.#limits = limits
  }

  /** Begins an idle stretch: at exit, after a chunk, at resume. */
  restart(nowMs: number): void {
    this.#idleSinceMs = nowMs
  }

  /** Stops counting: at pause. */
  stop(): void {
    this.#idleSinceMs = undefined
  }

  /** Counts output after exit; begins a new idle stretch if the clock runs. */
  chunk(bytes: number, nowMs: number): void {
    this.#bytes += bytes
    if (this.#idleSinceMs !== undefined) this.#idleSinceMs = nowMs
  }

  /** True when an endless writer has used up its allowance. */
  get isOverBytes(): boolean {
    return this.#bytes >= this.#limits.drainBytes
  }

  /** Milliseconds until the clock fires, 0 when it has, undefined while stopped. */
  remainingMs(nowMs: number): number | undefined {
    if (this.#idleSinceMs === undefined) return undefined
    return Math.max(0, this.#idleSinceMs + this.#limits.drainMs - nowMs)
  }
}
