import { SandwireError } from '@sandwire/protocol'
import { Buckets } from './buckets.ts'

/** People remembered; whoever asked for nothing for longest is forgotten first. */
const MAX_PEOPLE = 1_000

/** How much work in workspaces one person may ask for, by what each request costs. A whole minute's worth may come at once. */
export class WorkspaceBudget {
  readonly #perMinute: number
  readonly #buckets: Buckets

  /** 0: no limit. */
  constructor(perMinute: number) {
    this.#perMinute = perMinute
    this.#buckets = new Buckets({ perSecond: perMinute / 60, burst: perMinute, max: MAX_PEOPLE })
  }

  /** Takes what a request costs; throws `rate_limited` when so much is not left. */
  take(account: string, cost: number, nowMs: number): void {
    if (this.#perMinute === 0 || cost === 0) return
    // What costs more than a minute has is let through when all of it is there.
    const asked = Math.min(cost, this.#perMinute)
    const retryAfterMs = this.#buckets.waitMs(account, nowMs, asked)
    if (retryAfterMs > 0)
      throw new SandwireError('rate_limited', 'Cannot take more requests about files now', { retryAfterMs })
    this.#buckets.takeUpTo(account, asked, nowMs)
  }
}
