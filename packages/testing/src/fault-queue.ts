/** The faults of one direction of a connection. An absent field means no such fault. */
export interface DirectionFaults {
  /** Delay of each byte. */
  readonly latencyMs?: number
  /** Random addition to the latency, uniform between 0 and this; order is preserved. */
  readonly jitterMs?: number
  /** Sustained rate; `burstBytes` limits short bursts above it. */
  readonly rateBytesPerSecond?: number
  /** Writes at most this many bytes at a time, one write per event-loop turn, each in its own TCP segment. */
  readonly sliceBytes?: number
  /** Forwards neither bytes nor closes. Held bytes are delivered once this ends. */
  readonly blackHole?: boolean
}

/** What the caller does next. */
export type QueueStep =
  | { readonly kind: 'write'; readonly bytes: Uint8Array }
  | { readonly kind: 'wait'; readonly untilMs: number }
  | { readonly kind: 'end' }
  | { readonly kind: 'reset' }
  | { readonly kind: 'idle' }

/** Bytes queued before reading stops; about one small socket buffer. */
export const READ_AHEAD_BYTES = 16 * 1024

/** Bytes in flight with latency and no rate limit: 20 MB/s at 50 ms. */
const MAX_IN_FLIGHT_BYTES = 1024 * 1024

/** Largest burst above the rate, for rates that a timer can follow. */
const MAX_BURST_BYTES = 16 * 1024

/** A burst lasts at least this long at the rate, because timers have a resolution of 1 ms. */
const TIMER_SLACK_MS = 4

/** A burst lasts this long at the rate, up to `MAX_BURST_BYTES`. */
const BURST_MS = 16

type Item = { readonly readyAtMs: number } & (
  | { readonly kind: 'bytes'; bytes: Uint8Array }
  | { readonly kind: 'end' | 'reset' }
)

/** Largest burst at this rate: 16 ms worth up to 16 KiB, and 4 ms worth above 4 MB/s. */
export function burstBytes(rateBytesPerSecond: number): number {
  const bytesPerMs = rateBytesPerSecond / 1_000
  return Math.max(1, TIMER_SLACK_MS * bytesPerMs, Math.min(MAX_BURST_BYTES, BURST_MS * bytesPerMs))
}

/**
 * One direction of a faulty connection, without I/O: takes bytes and the time, returns the next step.
 * Bytes are never lost, duplicated or reordered, whatever the faults and however often they change.
 */
export class FaultQueue {
  #faults: DirectionFaults = {}
  readonly #items: Item[] = []
  readonly #nextRandom: () => number
  /** Bytes in `#items`. */
  #heldBytes = 0
  /** Bytes the rate allows now; at most one burst. */
  #credit = 0
  /** When `#credit` was last brought up to date. */
  #creditAtMs = 0

  /** `nextRandom` returns a number in [0, 1); called only for jitter. */
  constructor(nextRandom: () => number) {
    this.#nextRandom = nextRandom
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  /** True when the caller must stop reading; the result of a pending read may still be pushed. */
  get isFull(): boolean {
    return this.#heldBytes >= this.capacityBytes
  }

  /** The read-ahead plus, with latency, the bytes in flight. */
  get capacityBytes(): number {
    const { latencyMs = 0, jitterMs = 0, rateBytesPerSecond } = this.#faults
    const delayMs = latencyMs + jitterMs
    if (delayMs === 0) return READ_AHEAD_BYTES
    const inFlight =
      rateBytesPerSecond === undefined ? MAX_IN_FLIGHT_BYTES : (rateBytesPerSecond * delayMs) / 1_000
    return READ_AHEAD_BYTES + Math.min(inFlight, MAX_IN_FLIGHT_BYTES)
  }

  /** Replaces the faults. A new latency applies to bytes pushed from now on. */
  setFaults(faults: DirectionFaults, nowMs: number): void {
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

  /** The source closed or was reset; delivered after all bytes. */
  pushClose(kind: 'end' | 'reset', nowMs: number): void {
    this.#items.push({ kind, readyAtMs: this.#readyAtMs(nowMs) })
  }

  /** The next step. Returns the same step until `wrote` is called. */
  next(nowMs: number): QueueStep {
    const head = this.#items[0]
    if (head === undefined || this.#faults.blackHole === true) return { kind: 'idle' }
    if (head.readyAtMs > nowMs) return { kind: 'wait', untilMs: head.readyAtMs }
    if (head.kind !== 'bytes') return { kind: head.kind }
    const sliced = head.bytes.subarray(0, this.#faults.sliceBytes ?? head.bytes.length)
    return this.#withinRate(sliced, nowMs)
  }

  /** The first `length` bytes of the last write step were written. */
  wrote(length: number): void {
    const head = this.#items[0]
    if (head?.kind !== 'bytes') throw new Error('Cannot account for a write: no write was due')
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

  #withinRate(bytes: Uint8Array, nowMs: number): QueueStep {
    const rate = this.#faults.rateBytesPerSecond
    if (rate === undefined) return { kind: 'write', bytes }
    const burst = burstBytes(rate)
    this.#credit = Math.min(burst, this.#credit + ((nowMs - this.#creditAtMs) * rate) / 1_000)
    this.#creditAtMs = nowMs
    // A quarter of a burst at a time, so that a slow direction sends neither single bytes nor long bursts.
    const wanted = Math.min(bytes.length, Math.max(1, Math.floor(burst / 4)))
    if (this.#credit >= wanted) return { kind: 'write', bytes: bytes.subarray(0, Math.floor(this.#credit)) }
    return { kind: 'wait', untilMs: nowMs + ((wanted - this.#credit) * 1_000) / rate }
  }
}
