import { MAX_WINDOW_BYTES, MIN_WINDOW_BYTES, START_WINDOW_BYTES } from './limits.ts'

/** Queueing delay below which the window grows. */
const GROW_BELOW_MS = 50
/** Queueing delay above which the window shrinks. */
const SHRINK_ABOVE_MS = 100
/** How long a minimum ack delay is believed; a path may change. */
const MINIMUM_LIFE_MS = 30_000
/** While the minimum is measured anew, the window is this part of itself, so that it does not measure its own queue. */
const PROBE_SHIFT = 3
/** Frames in flight whose sending time is remembered; later ones are merged into the newest. */
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

/** The smallest delay is being measured anew. */
interface Probe {
  /** Sends behind this offset were made under the small window. */
  readonly from: number
  minimumMs: number
}

/**
 * How many output bytes may be unacknowledged, aiming at a bounded queueing delay rather than a bounded queue.
 * The delay of an ack minus the smallest delay seen is what the bytes in flight wait for each other; the window
 * doubles per round trip while that is nothing, grows slower the nearer it comes to the bound, and halves above.
 */
export class AckWindow {
  readonly #bounds: WindowBounds
  /** The lesser of the bound and what the client wants. */
  #maxBytes: number
  #sizeBytes: number
  /** Send times of offsets in flight, oldest first. */
  #samples: { end: number; sentMs: number }[] = []
  #minimumMs = Number.POSITIVE_INFINITY
  #minimumAtMs = 0
  /** The next shrink waits for the ack of something sent after the last one. */
  #shrinkAfter = 0
  #probe: Probe | undefined

  /** `wantedBytes` is the most the client wants in flight. */
  constructor(bounds: WindowBounds, wantedBytes: number = bounds.maxBytes) {
    this.#bounds = bounds
    this.#maxBytes = Math.max(1, Math.min(bounds.maxBytes, wantedBytes))
    this.#sizeBytes = Math.min(bounds.startBytes, this.#maxBytes)
  }

  get sizeBytes(): number {
    if (this.#probe === undefined) return this.#sizeBytes
    return Math.max(Math.min(this.#minBytes, this.#sizeBytes), this.#sizeBytes >> PROBE_SHIFT)
  }

  /** Bytes up to `end` were handed to the connection. */
  sent(end: number, nowMs: number): void {
    const last = this.#samples.at(-1)
    if (last !== undefined && this.#samples.length >= MAX_SAMPLES) last.end = end
    else this.#samples.push({ end, sentMs: nowMs })
  }

  /** Bytes up to `offset` were consumed; `ackedBytes` of them are news. `limited` says that the window was full. */
  acked(offset: number, ackedBytes: number, nowMs: number, limited: boolean): void {
    const delayMs = this.#takeDelay(offset, nowMs)
    if (delayMs === undefined) return
    if (this.#probe !== undefined) {
      this.#measure(this.#probe, delayMs, offset, nowMs)
      return
    }
    if (delayMs <= this.#minimumMs) this.#believe(delayMs, nowMs)
    else if (nowMs - this.#minimumAtMs > MINIMUM_LIFE_MS) this.#renew(delayMs, limited, nowMs)
    // The least window holds nothing that could wait for itself: what is left is the path's, or a consumer's own.
    if (
      this.#sizeBytes <= this.#minBytes &&
      delayMs - this.#minimumMs > SHRINK_ABOVE_MS &&
      offset > this.#shrinkAfter
    )
      this.#believe(delayMs, nowMs)
    this.#adapt(delayMs - this.#minimumMs, { offset, ackedBytes, limited })
  }

  /** Forgets what was in flight, after a cut. The size is kept as far as a fresh connection may have it. */
  restart(wantedBytes: number): void {
    this.#maxBytes = Math.max(1, Math.min(this.#bounds.maxBytes, wantedBytes))
    this.#samples = []
    this.#minimumMs = Number.POSITIVE_INFINITY
    this.#shrinkAfter = 0
    this.#probe = undefined
    this.#sizeBytes = Math.min(this.#sizeBytes, this.#bounds.startBytes, this.#maxBytes)
  }

  /** Never more than the most. */
  get #minBytes(): number {
    return Math.max(1, Math.min(this.#bounds.minBytes, this.#maxBytes))
  }

  #adapt(queueingMs: number, ack: { offset: number; ackedBytes: number; limited: boolean }): void {
    if (queueingMs > SHRINK_ABOVE_MS) {
      if (ack.offset <= this.#shrinkAfter) return
      this.#sizeBytes = Math.max(this.#minBytes, this.#sizeBytes >> 1)
      this.#shrinkAfter = this.#samples.at(-1)?.end ?? ack.offset
    } else if (queueingMs < GROW_BELOW_MS && ack.limited) {
      // A gap is acknowledged at once and says nothing about the path, so it counts as one window at most.
      const bytes = Math.min(ack.ackedBytes, this.#sizeBytes) * (1 - queueingMs / GROW_BELOW_MS)
      this.#sizeBytes = Math.min(this.#maxBytes, this.#sizeBytes + Math.ceil(bytes))
    }
  }

  #believe(minimumMs: number, nowMs: number): void {
    this.#minimumMs = minimumMs
    this.#minimumAtMs = nowMs
  }

  /** An old minimum is replaced: by this delay when nothing queues, else by a probe, which drains the queue first. */
  #renew(delayMs: number, limited: boolean, nowMs: number): void {
    if (limited) this.#probe = { from: this.#samples.at(-1)?.end ?? 0, minimumMs: delayMs }
    else this.#believe(delayMs, nowMs)
  }

  /** Takes a delay during a probe, which ends when everything sent before it is long gone, or nothing is in flight. */
  #measure(probe: Probe, delayMs: number, offset: number, nowMs: number): void {
    probe.minimumMs = Math.min(probe.minimumMs, delayMs)
    const isDrained = offset >= probe.from && this.#samples.length === 0
    if (!isDrained && offset < probe.from + 2 * this.sizeBytes) return
    this.#probe = undefined
    this.#believe(probe.minimumMs, nowMs)
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
