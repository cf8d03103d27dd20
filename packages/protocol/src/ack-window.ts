import { MAX_WINDOW_BYTES, MIN_WINDOW_BYTES, START_WINDOW_BYTES } from './limits.ts'

/** Queueing delay below which the window grows. */
const GROW_BELOW_MS = 50
/** Queueing delay above which the window shrinks. */
const SHRINK_ABOVE_MS = 100
/** How long a minimum ack delay is used before it is measured again; the path may change. */
const MINIMUM_LIFE_MS = 30_000
/** While the minimum is measured, the window is divided by this, so that its own queue is not measured. */
const PROBE_SHIFT = 3
/** Frames in flight whose sending time is remembered; later ones are merged into the newest. */
const MAX_SAMPLES = 256

/** Bounds of one attachment's window. */
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

/** The minimum delay is being measured. */
interface Probe {
  /** Bytes after this offset were sent with the small window. */
  readonly from: number
  minimumMs: number
}

/**
 * How many output bytes may be unacknowledged. It bounds the queueing delay, not the queue: the delay of an ack minus the
 * minimum delay is the time that bytes in flight wait for each other. The window doubles per round trip while that is zero,
 * grows more slowly as it approaches the bound, and is halved above it.
 */
export class AckWindow {
  readonly #bounds: WindowBounds
  /** The lesser of the upper bound and the client's maximum. */
  #maxBytes: number
  #sizeBytes: number
  /** Send times of offsets in flight, oldest first. */
  #samples: { end: number; sentMs: number }[] = []
  #minimumMs = Number.POSITIVE_INFINITY
  #minimumAtMs = 0
  /** The next shrink waits for the ack of something sent after the last one. */
  #shrinkAfter = 0
  #probe: Probe | undefined

  /** `wantedBytes` is the client's maximum. */
  constructor(bounds: WindowBounds, wantedBytes: number = bounds.maxBytes) {
    this.#bounds = bounds
    this.#maxBytes = Math.max(1, Math.min(bounds.maxBytes, wantedBytes))
    this.#sizeBytes = Math.min(bounds.startBytes, this.#maxBytes)
  }

  get sizeBytes(): number {
    if (this.#probe === undefined) return this.#sizeBytes
    return Math.max(Math.min(this.#minBytes, this.#sizeBytes), this.#sizeBytes >> PROBE_SHIFT)
  }

  /** Bytes up to `end` were passed to the connection. */
  sent(end: number, nowMs: number): void {
    const last = this.#samples.at(-1)
    if (last !== undefined && this.#samples.length >= MAX_SAMPLES) last.end = end
    else this.#samples.push({ end, sentMs: nowMs })
  }

  /** Bytes up to `offset` were consumed; `ackedBytes` of them for the first time. `limited`: the window was full. */
  acked(offset: number, ackedBytes: number, nowMs: number, limited: boolean): void {
    const delayMs = this.#takeDelay(offset, nowMs)
    if (delayMs === undefined) return
    if (this.#probe !== undefined) {
      this.#measure(this.#probe, delayMs, offset, nowMs)
      return
    }
    if (delayMs <= this.#minimumMs) this.#believe(delayMs, nowMs)
    else if (nowMs - this.#minimumAtMs > MINIMUM_LIFE_MS) this.#renew(delayMs, limited, nowMs)
    // The minimum window cannot queue behind itself, so the remaining delay is that of the path or the consumer.
    if (
      this.#sizeBytes <= this.#minBytes &&
      delayMs - this.#minimumMs > SHRINK_ABOVE_MS &&
      offset > this.#shrinkAfter
    )
      this.#believe(delayMs, nowMs)
    this.#adapt(delayMs - this.#minimumMs, { offset, ackedBytes, limited })
  }

  /** Forgets what was in flight, after a reconnect. The size is kept up to the initial size of a connection. */
  restart(wantedBytes: number): void {
    this.#maxBytes = Math.max(1, Math.min(this.#bounds.maxBytes, wantedBytes))
    this.#samples = []
    this.#minimumMs = Number.POSITIVE_INFINITY
    this.#shrinkAfter = 0
    this.#probe = undefined
    this.#sizeBytes = Math.min(this.#sizeBytes, this.#bounds.startBytes, this.#maxBytes)
  }

  get #minBytes(): number {
    return Math.max(1, Math.min(this.#bounds.minBytes, this.#maxBytes))
  }

  #adapt(queueingMs: number, ack: { offset: number; ackedBytes: number; limited: boolean }): void {
    if (queueingMs > SHRINK_ABOVE_MS) {
      if (ack.offset <= this.#shrinkAfter) return
      this.#sizeBytes = Math.max(this.#minBytes, this.#sizeBytes >> 1)
      this.#shrinkAfter = this.#samples.at(-1)?.end ?? ack.offset
    } else if (queueingMs < GROW_BELOW_MS && ack.limited) {
      // A gap is acknowledged at once and does not measure the path, so it counts as one window at most.
      const bytes = Math.min(ack.ackedBytes, this.#sizeBytes) * (1 - queueingMs / GROW_BELOW_MS)
      this.#sizeBytes = Math.min(this.#maxBytes, this.#sizeBytes + Math.ceil(bytes))
    }
  }

  #believe(minimumMs: number, nowMs: number): void {
    this.#minimumMs = minimumMs
    this.#minimumAtMs = nowMs
  }

  /** Replaces an old minimum: by this delay when nothing queues, otherwise by a probe, which drains the queue first. */
  #renew(delayMs: number, limited: boolean, nowMs: number): void {
    if (limited) this.#probe = { from: this.#samples.at(-1)?.end ?? 0, minimumMs: delayMs }
    else this.#believe(delayMs, nowMs)
  }

  /** Records a delay during a probe, which ends when everything sent before it was acknowledged or nothing is in flight. */
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
