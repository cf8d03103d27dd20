/** Delays between attempts. */
export interface BackOffBounds {
  readonly firstMs: number
  readonly maxMs: number
}

/** A short first delay, because most lost connections are a restarting relay; at most 10 s. */
export const DEFAULT_BACK_OFF: BackOffBounds = { firstMs: 100, maxMs: 10_000 }

/** Delay after failure number `attempt` (from 1): it doubles with each. */
export function doublingDelayMs(attempt: number, { firstMs, maxMs }: BackOffBounds): number {
  return Math.min(maxMs, firstMs * 2 ** Math.min(Math.max(attempt - 1, 0), 30))
}

/**
 * Delay before attempt number `attempt` (from 1), with jitter over half the span so that clients that
 * were disconnected together do not reconnect together. `random` is in [0, 1).
 */
export function backOffMs(attempt: number, random: number, bounds: BackOffBounds = DEFAULT_BACK_OFF): number {
  const span = doublingDelayMs(attempt, bounds)
  return Math.round(span / 2 + (span / 2) * random)
}
