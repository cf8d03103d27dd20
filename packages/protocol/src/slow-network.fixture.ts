import { AckWindow, DEFAULT_WINDOW } from './ack-window.ts'
import { ACK_BYTES, ACK_DELAY_MS, MAX_DATA_BYTES } from './limits.ts'

/** A network path with one queue, and a client that consumes at once and acknowledges as the protocol requires. */
export interface NetworkPlan {
  readonly bytesPerMs: number
  /** Round-trip time of the empty path. */
  readonly roundTripMs: number
  readonly forMs: number
}

/** Measurements of the second half of a run. */
export interface NetworkReport {
  readonly windowBytes: number
  /** Longest and mean queueing delay of a byte. */
  readonly maxQueueMs: number
  readonly meanQueueMs: number
  /** Used share of the rate, 0 to 1. */
  readonly usage: number
  readonly smallestWindowBytes: number
  readonly largestWindowBytes: number
}

const STEP_MS = 0.25

/** An endless process sends through a window over a path of limited rate, in virtual time. */
class FloodedNetwork {
  readonly #plan: NetworkPlan
  readonly #window: AckWindow
  /** When the queue of the path will be empty. */
  #freeMs = 0
  #sent = 0
  #acked = 0
  #consumed = 0
  #ackSent = 0
  #ackDueMs: number | undefined
  readonly #arrivals: { end: number; atMs: number }[] = []
  readonly #acks: { offset: number; atMs: number }[] = []
  readonly #queueMs: number[] = []
  #delivered = 0
  #smallest = Number.POSITIVE_INFINITY
  #largest = 0

  constructor(plan: NetworkPlan, window: AckWindow) {
    this.#plan = plan
    this.#window = window
  }

  run(): NetworkReport {
    const { forMs, bytesPerMs } = this.#plan
    for (let nowMs = 0; nowMs < forMs; nowMs += STEP_MS) {
      this.#receiveAcks(nowMs)
      this.#send(nowMs)
      this.#arrive(nowMs)
      this.#acknowledge(nowMs)
    }
    return {
      windowBytes: this.#window.sizeBytes,
      maxQueueMs: this.#queueMs.reduce((most, ms) => Math.max(most, ms), 0),
      meanQueueMs: this.#queueMs.reduce((sum, ms) => sum + ms, 0) / Math.max(1, this.#queueMs.length),
      usage: this.#delivered / (forMs / 2) / bytesPerMs,
      smallestWindowBytes: this.#smallest,
      largestWindowBytes: this.#largest,
    }
  }

  #isLate(nowMs: number): boolean {
    return nowMs > this.#plan.forMs / 2
  }

  #receiveAcks(nowMs: number): void {
    for (let ack = this.#acks[0]; ack !== undefined && ack.atMs <= nowMs; ack = this.#acks[0]) {
      this.#acks.shift()
      const isLimited = this.#sent - this.#acked >= this.#window.sizeBytes
      const newlyAcked = ack.offset - this.#acked
      this.#acked = ack.offset
      this.#window.acked(ack.offset, newlyAcked, nowMs, isLimited)
    }
    this.#smallest = Math.min(this.#smallest, this.#window.sizeBytes)
    this.#largest = Math.max(this.#largest, this.#window.sizeBytes)
  }

  #send(nowMs: number): void {
    for (;;) {
      const availableBytes = this.#window.sizeBytes - (this.#sent - this.#acked)
      const bytes = Math.min(
        availableBytes,
        Math.max(1, Math.min(MAX_DATA_BYTES, this.#window.sizeBytes >> 2)),
      )
      if (bytes <= 0) return
      this.#sent += bytes
      this.#freeMs = Math.max(this.#freeMs, nowMs) + bytes / this.#plan.bytesPerMs
      if (this.#isLate(nowMs)) this.#queueMs.push(this.#freeMs - nowMs)
      this.#arrivals.push({ end: this.#sent, atMs: this.#freeMs + this.#plan.roundTripMs / 2 })
      this.#window.sent(this.#sent, nowMs)
    }
  }

  #arrive(nowMs: number): void {
    for (let next = this.#arrivals[0]; next !== undefined && next.atMs <= nowMs; next = this.#arrivals[0]) {
      this.#arrivals.shift()
      if (this.#isLate(nowMs)) this.#delivered += next.end - this.#consumed
      this.#consumed = next.end
      this.#ackDueMs ??= nowMs + ACK_DELAY_MS
    }
  }

  #acknowledge(nowMs: number): void {
    const isDue = this.#ackDueMs !== undefined && nowMs >= this.#ackDueMs
    if (this.#consumed - this.#ackSent < ACK_BYTES && !isDue) return
    this.#acks.push({ offset: this.#consumed, atMs: nowMs + this.#plan.roundTripMs / 2 })
    this.#ackSent = this.#consumed
    this.#ackDueMs = undefined
  }
}

/** Floods a path through a window and reports how long bytes queued. */
export function floodNetwork(
  plan: NetworkPlan,
  window: AckWindow = new AckWindow(DEFAULT_WINDOW),
): NetworkReport {
  return new FloodedNetwork(plan, window).run()
}
