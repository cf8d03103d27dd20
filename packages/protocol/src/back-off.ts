/** Delays between attempts to reconnect. */
export interface BackOffBounds {
  readonly firstMs: number
  readonly maxMs: number
}

/** A short first delay, because most lost connections are a restarting relay; at most 10 s. */
export const DEFAULT_BACK_OFF: BackOffBounds = { firstMs: 100, maxMs: 10_000 }

/**
 * Delay before attempt number `attempt` (from 1), with jitter over half the span so that clients that
 * were disconnected together do not reconnect together. `random` is in [0, 1).
 */
export function backOffMs(attempt: number, random: number, bounds: BackOffBounds = DEFAULT_BACK_OFF): number {
  const span = Math.min(bounds.maxMs, bounds.firstMs * 2 ** Math.min(attempt - 1, 30))
  return Math.round(span / 2 + (span / 2) * random)
}
