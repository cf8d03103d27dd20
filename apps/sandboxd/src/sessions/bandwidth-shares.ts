import { createBandwidth, type SessionLimits, type TokenBucket } from '@sandwire/protocol'

/** People remembered; the one who came longest ago is forgotten first. Far more than a sandbox is shared with. */
const MAX_PEOPLE = 1_000

/** The output that each person may be sent per second, in all sessions and attachments together. */
export class BandwidthShares {
  readonly #limits: Pick<SessionLimits, 'outputBytesPerSecond'>
  readonly #now: () => number
  readonly #shares = new Map<string, TokenBucket>()

  constructor(limits: Pick<SessionLimits, 'outputBytesPerSecond'>, now: () => number) {
    this.#limits = limits
    this.#now = now
  }

  /** Undefined: there is no limit. */
  of(identity: string): TokenBucket | undefined {
    const share = this.#shares.get(identity) ?? createBandwidth(this.#limits, this.#now())
    if (share === undefined) return undefined
    this.#shares.delete(identity)
    this.#shares.set(identity, share)
    const [oldest] = this.#shares.keys()
    if (this.#shares.size > MAX_PEOPLE && oldest !== undefined) this.#shares.delete(oldest)
    return share
  }
}
