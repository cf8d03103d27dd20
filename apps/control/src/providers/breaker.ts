/** Failures in a row that open the breaker. */
export const FAILURES_TO_OPEN = 5
/** How long it stays open before one call may try. */
export const OPEN_MS = 2_000

/** Whether calls go through. */
export type BreakerState =
  | { readonly is: 'closed'; readonly failures: number }
  | { readonly is: 'open'; readonly untilMs: number }
  /** One call is trying; `untilMs` bounds it, in case its outcome is never told. */
  | { readonly is: 'half_open'; readonly untilMs: number }

const CLOSED: BreakerState = { is: 'closed', failures: 0 }

/** Whether a call may go now, and the state when it goes. */
function admit(
  state: BreakerState,
  nowMs: number,
): { readonly isAllowed: boolean; readonly state: BreakerState } {
  if (state.is === 'closed') return { isAllowed: true, state }
  if (nowMs < state.untilMs) return { isAllowed: false, state }
  return { isAllowed: true, state: { is: 'half_open', untilMs: nowMs + OPEN_MS } }
}

function failed(state: BreakerState, nowMs: number): BreakerState {
  const failures = state.is === 'closed' ? state.failures + 1 : FAILURES_TO_OPEN
  return failures >= FAILURES_TO_OPEN ? { is: 'open', untilMs: nowMs + OPEN_MS } : { is: 'closed', failures }
}

/** Refuses calls for a while after failures in a row, so that nobody waits for what is away. The clock is an argument. */
export class Breaker {
  #state: BreakerState = CLOSED

  get state(): BreakerState {
    return this.#state
  }

  admit(nowMs: number): boolean {
    const { isAllowed, state } = admit(this.#state, nowMs)
    this.#state = state
    return isAllowed
  }

  succeeded(): void {
    this.#state = CLOSED
  }

  failed(nowMs: number): void {
    this.#state = failed(this.#state, nowMs)
  }
}
