import { MAX_WINDOW_BYTES, MIN_WINDOW_BYTES, START_WINDOW_BYTES } from './limits.ts'

/** Queueing delay below which the window grows. */
const GROW_BELOW_MS = 50
/** Queueing delay above which the window shrinks. */
const SHRINK_ABOVE_MS = 100
/** How long a minimum ack delay is believed; a path may change. */
const MINIMUM_LIFE_MS = 30_000
/** Frames in flight whose sending time is remembered; older ones are merged into the newest. */
const MAX_SAMPLES = 256

/** The bounds of one attachment's window. */
export interface WindowBounds {
  readonly startBytes: number
  readonly minBytes: number
  readonly maxBytes: number
}

export const DEFAULT_WINDOW: WindowBounds = {
  startBytes: START_WINDOW_BYTES,
  minBytes: MIN_WINDOW_BYTES,
  maxBytes: MAX_WINDOW_BYTES,
}

/**
 * How many output bytes may be unacknowledged, aiming at a bounded queueing delay rather than a bounded queue.
 * The delay of an ack minus the smallest delay seen is what the bytes in flight wait for each other;
 * the window doubles per round trip while that is short and halves when it is long.
 */
export class AckWindow {
  readonly #bounds: WindowBounds
  #sizeBytes: number
  /** Send times of offsets in flight, oldest first. */
  #samples: { end: number; sentMs: number }[] = []
  #minimumMs = Number.POSITIVE_INFINITY
  #minimumAtMs = 0
  /** The next shrink waits until everything sent before the last one is acknowledged. */
  #shrinkAfter = 0

  constructor(bounds: WindowBounds) {
    this.#bounds = bounds
    this.#sizeBytes = Math.min(bounds.startBytes, bounds.maxBytes)
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** Bytes up to `end` were handed to the connection. */
  sent(end: number, nowMs: number): void {
    const last = this.#samples.at(-1)
    if (last !== undefined && (last.sentMs === nowMs || this.#samples.length >= MAX_SAMPLES)) last.end = end
    else this.#samples.push({ end, sentMs: nowMs })
  }

  /** Bytes up to `offset` were consumed; `ackedBytes` of them are news. `limited` says that the window was full. */
  acked(offset: number, ackedBytes: number, nowMs: number, limited: boolean): void {
    const delayMs = this.#takeDelay(offset, nowMs)
    if (delayMs === undefined) return
    if (delayMs <= this.#minimumMs || nowMs - this.#minimumAtMs > MINIMUM_LIFE_MS) {
      this.#minimumMs = delayMs
      this.#minimumAtMs = nowMs
    }
    const queueingMs = delayMs - this.#minimumMs
    if (queueingMs > SHRINK_ABOVE_MS) this.#shrink(offset)
    else if (queueingMs < GROW_BELOW_MS && limited) {
      this.#sizeBytes = Math.min(this.#bounds.maxBytes, this.#sizeBytes + ackedBytes)
    }
  }

  /** Forgets what was in flight, after a cut. The size is kept: the path is probably the same. */
  restart(): void {
    this.#samples = []
    this.#minimumMs = Number.POSITIVE_INFINITY
    this.#shrinkAfter = 0
    this.#sizeBytes = Math.min(this.#sizeBytes, this.#bounds.startBytes)
  }

  #shrink(offset: number): void {
    if (offset < this.#shrinkAfter) return
    this.#sizeBytes = Math.max(this.#bounds.minBytes, this.#sizeBytes >> 1, 1)
    this.#shrinkAfter = this.#samples.at(-1)?.end ?? offset
  }

  /** Age of the newest send that `offset` covers. */
  #takeDelay(offset: number, nowMs: number): number | undefined {
    let delayMs: number | undefined
    let covered = 0
    for (const sample of this.#samples) {
      if (sample.end > offset) break
      delayMs = nowMs - sample.sentMs
      covered += 1
    }
    if (covered > 0) this.#samples.splice(0, covered)
    return delayMs
  }
}
