import { AckWindow, DEFAULT_WINDOW } from './ack-window.ts'
import { ACK_BYTES, ACK_DELAY_MS, MAX_DATA_BYTES } from './limits.ts'

/** A link with one queue, and a client that consumes at once and acknowledges by the rules. */
export interface LinkPlan {
  readonly bytesPerMs: number
  /** Delay of an empty link, there and back. */
  readonly roundTripMs: number
  readonly forMs: number
  /** Bytes the program writes per millisecond; without it, as many as fit. */
  readonly offeredPerMs?: number
}

/** What the link saw in the last half of the run. */
export interface LinkReport {
  readonly windowBytes: number
  /** Longest and mean time a byte waited in the queue. */
  readonly maxQueueMs: number
  readonly meanQueueMs: number
  readonly goodputPerMs: number
  readonly smallestWindow: number
}

/** Floods a link for a while through a window and reports how long bytes queued. */
export function floodLink(plan: LinkPlan, window: AckWindow = new AckWindow(DEFAULT_WINDOW)): LinkReport {
  const stepMs = 0.25
  /** When the link is free again. */
  let freeMs = 0
  let sent = 0
  let acked = 0
  let offered = 0
  let consumed = 0
  let ackSent = 0
  let ackDueMs: number | undefined
  const arrivals: { end: number; atMs: number }[] = []
  const acks: { offset: number; atMs: number }[] = []
  const queueMs: number[] = []
  let delivered = 0
  let smallestWindow = Number.POSITIVE_INFINITY
  for (let nowMs = 0; nowMs < plan.forMs; nowMs += stepMs) {
    const isLate = nowMs > plan.forMs / 2
    offered = plan.offeredPerMs === undefined ? Number.POSITIVE_INFINITY : nowMs * plan.offeredPerMs
    while (acks[0] !== undefined && acks[0].atMs <= nowMs) {
      const offset = acks.shift()?.offset ?? 0
      const isLimited = sent - acked >= window.sizeBytes
      const news = offset - acked
      acked = offset
      window.acked(offset, news, nowMs, isLimited)
    }
    smallestWindow = Math.min(smallestWindow, window.sizeBytes)
    for (;;) {
      const room = Math.min(window.sizeBytes - (sent - acked), Math.floor(offered - sent))
      const bytes = Math.min(room, Math.max(1, Math.min(MAX_DATA_BYTES, window.sizeBytes >> 2)))
      if (bytes <= 0) break
      sent += bytes
      freeMs = Math.max(freeMs, nowMs) + bytes / plan.bytesPerMs
      if (isLate) queueMs.push(freeMs - nowMs)
      arrivals.push({ end: sent, atMs: freeMs + plan.roundTripMs / 2 })
      window.sent(sent, nowMs)
    }
    while (arrivals[0] !== undefined && arrivals[0].atMs <= nowMs) {
      const end = arrivals.shift()?.end ?? 0
      if (isLate) delivered += end - consumed
      consumed = end
      ackDueMs ??= nowMs + ACK_DELAY_MS
    }
    if (consumed - ackSent >= ACK_BYTES || (ackDueMs !== undefined && nowMs >= ackDueMs)) {
      if (consumed > ackSent) acks.push({ offset: consumed, atMs: nowMs + plan.roundTripMs / 2 })
      ackSent = consumed
      ackDueMs = undefined
    }
  }
  return {
    windowBytes: window.sizeBytes,
    maxQueueMs: Math.max(0, ...queueMs),
    meanQueueMs: queueMs.reduce((sum, ms) => sum + ms, 0) / Math.max(1, queueMs.length),
    goodputPerMs: delivered / (plan.forMs / 2),
    smallestWindow,
  }
}
