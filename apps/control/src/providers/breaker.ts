/** Failures in a row that open the breaker. */
export const FAILURES_TO_OPEN = 5
/** How long it stays open before one call is tried. */
export const OPEN_MS = 2_000

export type BreakerState =
  | { readonly kind: 'closed'; readonly failures: number }
  | { readonly kind: 'open'; readonly untilMs: number }
  /** One call is being tried; `untilMs` bounds it, in case its outcome is never reported. */
  | { readonly kind: 'half-open'; readonly untilMs: number }

const CLOSED: BreakerState = { kind: 'closed', failures: 0 }

/** Whether a call is allowed now, and the state after it was. */
function admit(
  state: BreakerState,
  nowMs: number,
): { readonly isAllowed: boolean; readonly state: BreakerState } {
  if (state.kind === 'closed') return { isAllowed: true, state }
  if (nowMs < state.untilMs) return { isAllowed: false, state }
  return { isAllowed: true, state: { kind: 'half-open', untilMs: nowMs + OPEN_MS } }
}

function failed(state: BreakerState, nowMs: number): BreakerState {
  const failures = state.kind === 'closed' ? state.failures + 1 : FAILURES_TO_OPEN
  return failures >= FAILURES_TO_OPEN
    ? { kind: 'open', untilMs: nowMs + OPEN_MS }
    : { kind: 'closed', failures }
}

/** Circuit breaker: refuses calls for a while after consecutive failures. The clock is an argument. */
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

/** Failing keys that are tracked; the least recent failure is dropped first. */
const MAX_FAILING = 1_000
/** A breaker without a failure for this long is dropped. */
const STALE_MS = 60_000

interface Failing {
  readonly breaker: Breaker
  readonly atMs: number
}

/** A circuit breaker per key, for example per sandbox. */
export class Breakers {
  /** Keys that have failed since their last success. */
  readonly #failing = new Map<string, Failing>()

  admit(key: string, nowMs: number): boolean {
    return this.#failing.get(key)?.breaker.admit(nowMs) ?? true
  }

  succeeded(key: string): void {
    this.#failing.delete(key)
  }

  failed(key: string, nowMs: number): void {
    const breaker = this.#failing.get(key)?.breaker ?? new Breaker()
    breaker.failed(nowMs)
    this.#failing.delete(key)
    this.#failing.set(key, { breaker, atMs: nowMs })
    const [oldest] = this.#failing.keys()
    if (this.#failing.size > MAX_FAILING && oldest !== undefined) this.#failing.delete(oldest)
  }

  /** The number of open breakers, and the worst state. */
  summary(nowMs: number): { readonly worst: BreakerState['kind']; readonly open: number } {
    for (const [key, { atMs }] of this.#failing) if (nowMs - atMs > STALE_MS) this.#failing.delete(key)
    const states = [...this.#failing.values()].map(({ breaker }) => breaker.state.kind)
    const open = states.filter((state) => state === 'open').length
    const next = states.includes('half-open') ? 'half-open' : 'closed'
    return { worst: open > 0 ? 'open' : next, open }
  }
}
