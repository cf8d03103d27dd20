import { createBandwidth, type SessionLimits, type TokenBucket } from '@sandwire/protocol'

/** Least recently used accounts are dropped first. Far more than a sandbox is shared with. */
const MAX_ACCOUNTS = 1_000

/** Output rate limit of each account, over all its sessions and attachments. */
export class BandwidthShares {
  readonly #limits: Pick<SessionLimits, 'outputBytesPerSecond'>
  readonly #now: () => number
  readonly #shares = new Map<string, TokenBucket>()

  constructor(limits: Pick<SessionLimits, 'outputBytesPerSecond'>, now: () => number) {
    this.#limits = limits
    this.#now = now
  }

  /** Undefined when there is no limit. */
  of(identity: string): TokenBucket | undefined {
    const share = this.#shares.get(identity) ?? createBandwidth(this.#limits, this.#now())
    if (share === undefined) return undefined
    this.#shares.delete(identity)
    this.#shares.set(identity, share)
    const [oldest] = this.#shares.keys()
    if (this.#shares.size > MAX_ACCOUNTS && oldest !== undefined) this.#shares.delete(oldest)
    return share
  }
}
