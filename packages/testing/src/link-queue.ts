/** What one direction of a link does to the bytes it carries. Absent fields do nothing. */
export interface LinkFaults {
  /** Time each byte spends on the link. */
  readonly latencyMs?: number
  /** Random addition to the latency, evenly between 0 and this; order is kept. */
  readonly jitterMs?: number
  /** Steady rate; see `burstBytes` for how far above it the link may go for a moment. */
  readonly rateBytesPerSecond?: number
  /** Writes at most this many bytes at a time, one write per loop turn, each in a segment of its own. */
  readonly sliceBytes?: number
  /** Forwards nothing, neither bytes nor a close. What is held is delivered once this ends. */
  readonly blackHole?: boolean
}

/** What the driver of a queue does next. */
export type LinkStep =
  | { readonly kind: 'write'; readonly bytes: Uint8Array }
  | { readonly kind: 'wait'; readonly untilMs: number }
  | { readonly kind: 'end' }
  | { readonly kind: 'reset' }
  | { readonly kind: 'idle' }

/** Bytes a link takes in before it stops reading; about one small socket buffer. */
export const READ_AHEAD_BYTES = 16 * 1024

/** Bytes on the way over a link that has latency and no rate: 20 MB/s at 50 ms. */
const LATENCY_LINE_BYTES = 1024 * 1024

/** Longest burst above the rate, for rates a timer can follow. */
const MAX_BURST_BYTES = 16 * 1024

/** A link gives out at least this much time's worth at once, since timers are no finer than 1 ms. */
const TIMER_SLACK_MS = 4

/** A burst is this much time's worth of bytes, up to `MAX_BURST_BYTES`. */
const BURST_MS = 16

type Item = { readonly readyAtMs: number } & (
  | { readonly kind: 'bytes'; bytes: Uint8Array }
  | { readonly kind: 'end' | 'reset' }
)

/** Bytes a link of this rate may give out at once: 16 ms worth up to 16 KiB, and 4 ms worth above 4 MB/s. */
export function burstBytes(rateBytesPerSecond: number): number {
  const bytesPerMs = rateBytesPerSecond / 1_000
  return Math.max(1, TIMER_SLACK_MS * bytesPerMs, Math.min(MAX_BURST_BYTES, BURST_MS * bytesPerMs))
}

/**
 * One direction of a faulty link, without I/O: bytes go in with the time, steps come out with the time.
 * Bytes are never lost, doubled or reordered, whatever the faults and however often they change.
 */
export class LinkQueue {
  #faults: LinkFaults = {}
  readonly #items: Item[] = []
  readonly #nextRandom: () => number
  /** Bytes in `#items`. */
  #heldBytes = 0
  /** Bytes the rate allows now; at most one burst. */
  #credit = 0
  /** When `#credit` was last brought up to date. */
  #creditAtMs = 0

  /** `nextRandom` answers in [0, 1) and is asked only for jitter. */
  constructor(nextRandom: () => number) {
    this.#nextRandom = nextRandom
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  /** Whether the driver stops reading; a read under way may still be pushed. */
  get isFull(): boolean {
    return this.#heldBytes >= this.capacityBytes
  }

  /** The read-ahead, plus what is on the way over a link with latency. */
  get capacityBytes(): number {
    const { latencyMs = 0, jitterMs = 0, rateBytesPerSecond } = this.#faults
    const delayMs = latencyMs + jitterMs
    if (delayMs === 0) return READ_AHEAD_BYTES
    const inFlight =
      rateBytesPerSecond === undefined ? LATENCY_LINE_BYTES : (rateBytesPerSecond * delayMs) / 1_000
    return READ_AHEAD_BYTES + Math.min(inFlight, LATENCY_LINE_BYTES)
  }

  /** Replaces the faults. A new latency holds for bytes pushed from now on. */
  setFaults(faults: LinkFaults, nowMs: number): void {
    this.#faults = faults
    this.#credit = 0
    this.#creditAtMs = nowMs
  }

  /** Takes ownership of `bytes`. */
  push(bytes: Uint8Array, nowMs: number): void {
    if (bytes.length === 0) return
    this.#items.push({ kind: 'bytes', bytes, readyAtMs: this.#readyAtMs(nowMs) })
    this.#heldBytes += bytes.length
  }

  /** The source ended, cleanly or not; comes out after all bytes. */
  pushClose(kind: 'end' | 'reset', nowMs: number): void {
    this.#items.push({ kind, readyAtMs: this.#readyAtMs(nowMs) })
  }

  /** What to do now. Says the same again until `wrote` is told. */
  next(nowMs: number): LinkStep {
    const head = this.#items[0]
    if (head === undefined || this.#faults.blackHole === true) return { kind: 'idle' }
    if (head.readyAtMs > nowMs) return { kind: 'wait', untilMs: head.readyAtMs }
    if (head.kind !== 'bytes') return { kind: head.kind }
    const sliced = head.bytes.subarray(0, this.#faults.sliceBytes ?? head.bytes.length)
    return this.#withinRate(sliced, nowMs)
  }

  /** The first `length` bytes of the last write step left the link. */
  wrote(length: number): void {
    const head = this.#items[0]
    if (head?.kind !== 'bytes') throw new Error('Cannot account for a write: nothing was to be written')
    this.#heldBytes -= length
    this.#credit -= length
    if (length === head.bytes.length) this.#items.shift()
    else head.bytes = head.bytes.subarray(length)
  }

  #readyAtMs(nowMs: number): number {
    const { latencyMs = 0, jitterMs = 0 } = this.#faults
    const delayMs = latencyMs + (jitterMs === 0 ? 0 : jitterMs * this.#nextRandom())
    return Math.max(nowMs + delayMs, this.#items.at(-1)?.readyAtMs ?? 0)
  }

  #withinRate(bytes: Uint8Array, nowMs: number): LinkStep {
    const rate = this.#faults.rateBytesPerSecond
    if (rate === undefined) return { kind: 'write', bytes }
    const burst = burstBytes(rate)
    this.#credit = Math.min(burst, this.#credit + ((nowMs - this.#creditAtMs) * rate) / 1_000)
    this.#creditAtMs = nowMs
    // A quarter of a burst at a time, so that a slow link neither sends single bytes nor long bursts.
    const wanted = Math.min(bytes.length, Math.max(1, Math.floor(burst / 4)))
    if (this.#credit >= wanted) return { kind: 'write', bytes: bytes.subarray(0, Math.floor(this.#credit)) }
    return { kind: 'wait', untilMs: nowMs + ((wanted - this.#credit) * 1_000) / rate }
  }
}
