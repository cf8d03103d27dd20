import { doublingDelayMs } from '@sandwire/protocol'

/** How one queue of an outbox behaves. */
export interface OutboxPolicy {
  /** Name of the queue. The queues of one Durable Object share a table. */
  readonly queue: string
  /** `fifo`: messages to one destination are sent in order. `none`: every message is sent and retried on its own. */
  readonly order: 'fifo' | 'none'
  /** Most messages that are sent at once to one destination. */
  readonly batchSize: number
  /** Between queueing a message and its first attempt, unless the caller delivers sooner. */
  readonly initialDelayMs: number
  /** Delay after the first failed attempt; it doubles with each further one. */
  readonly firstRetryMs: number
  readonly maxRetryMs: number
  /**
   * When a message becomes a dead letter: after this time and this many attempts, of which new messages cause more. Absent: it
   * is retried until it is confirmed.
   */
  readonly deadLetterAfter?: { readonly ms: number; readonly attempts: number }
  readonly maxPending: number
  /**
   * When `maxPending` is reached. `refuse`: `enqueue` returns false. `dead_letter_oldest`: the oldest message becomes a dead
   * letter. `drop_escalated`: the oldest escalated messages are dropped; the others may exceed the bound.
   */
  readonly overflow: 'refuse' | 'dead_letter_oldest' | 'drop_escalated'
  /** When the key is queued already. `keep`: nothing changes. `restart`: the new message replaces it and is due at once. */
  readonly onDuplicate: 'keep' | 'restart'
  /** When an unconfirmed message needs its fallback: after this time or this many attempts, whichever is first. */
  readonly escalateAfter?: { readonly ms: number; readonly attempts: number }
}

export interface OutboxMessage {
  /** Order of queueing; never reused. */
  readonly seq: number
  readonly destination: string
  /** Unique among the pending messages of a destination; also the idempotency key for the receiver. */
  readonly key: string
  readonly body: string
  readonly queuedMs: number
  /** Failed attempts so far. */
  readonly attempts: number
  /** Time of the next attempt. */
  readonly nextMs: number
  /** The fallback has taken effect; delivery is still retried. */
  readonly isEscalated: boolean
}

export function retryDelayMs(
  attempts: number,
  { firstRetryMs, maxRetryMs }: Pick<OutboxPolicy, 'firstRetryMs' | 'maxRetryMs'>,
): number {
  return doublingDelayMs(attempts, { firstMs: firstRetryMs, maxMs: maxRetryMs })
}

/** The delay that `nextMs` was computed with. */
function delayMs({ attempts }: OutboxMessage, policy: OutboxPolicy): number {
  return attempts === 0 ? policy.initialDelayMs : retryDelayMs(attempts, policy)
}

/** True when the fallback must be used now. A clock that was set back counts as elapsed time. */
export function isEscalationDue(
  { queuedMs, attempts, isEscalated }: OutboxMessage,
  { escalateAfter }: OutboxPolicy,
  nowMs: number,
): boolean {
  if (escalateAfter === undefined || isEscalated) return false
  return nowMs >= queuedMs + escalateAfter.ms || nowMs < queuedMs || attempts >= escalateAfter.attempts
}

/** Time until the message must be attempted or escalated: never longer than its delay, even if the clock was set back. */
export function dueInMs(message: OutboxMessage, policy: OutboxPolicy, nowMs: number): number {
  const { escalateAfter } = policy
  const escalateMs =
    escalateAfter === undefined || message.isEscalated
      ? Number.POSITIVE_INFINITY
      : message.queuedMs + escalateAfter.ms
  const waitMs = Math.min(message.nextMs, escalateMs) - nowMs
  return Math.max(0, Math.min(waitMs, delayMs(message, policy)))
}

/** True when the message should be attempted now. A wait longer than the delay means that the clock was set back. */
export function isDue(message: OutboxMessage, policy: OutboxPolicy, nowMs: number): boolean {
  const waitMs = message.nextMs - nowMs
  return waitMs <= 0 || waitMs > delayMs(message, policy) || isEscalationDue(message, policy, nowMs)
}
