import { Breaker, type BreakerState } from './breaker.ts'

/** Those remembered that have failed; the one that failed longest ago is forgotten first. */
const MAX_FAILING = 1_000
/** After so long without a call it says nothing any more about what it stands for. */
const STALE_MS = 60_000

interface Failing {
  readonly breaker: Breaker
  readonly atMs: number
}

/** A breaker for each of many, such as sandboxes: one that hangs holds up nobody but those who want it. */
export class Breakers {
  /** Only those that have failed since they last succeeded. */
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

  /** How many refuse calls now, and what the worst of all is. */
  summary(nowMs: number): { readonly worst: BreakerState['is']; readonly open: number } {
    for (const [key, { atMs }] of this.#failing) if (nowMs - atMs > STALE_MS) this.#failing.delete(key)
    const states = [...this.#failing.values()].map(({ breaker }) => breaker.state.is)
    const open = states.filter((state) => state === 'open').length
    const onTrial = states.includes('half_open') ? 'half_open' : 'closed'
    return { worst: open > 0 ? 'open' : onTrial, open }
  }
}
