import type { BlockReason } from '@sandwire/network-policy'

/** A recently blocked target. */
export interface BlockedHost {
  readonly host: string
  readonly port: number
  readonly reason: BlockReason
  readonly count: number
}

/** Most targets remembered; the least recent is dropped. */
const MAX_BLOCKED = 100

/** Counts blocked connections per host and port. */
export class BlockedHosts {
  readonly #entries = new Map<string, BlockedHost>()

  /** Returns the updated entry. */
  add(host: string, port: number, reason: BlockReason): BlockedHost {
    const key = `${host}:${port}`
    const entry = { host, port, reason, count: (this.#entries.get(key)?.count ?? 0) + 1 }
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    const [oldest] = this.#entries.keys()
    if (this.#entries.size > MAX_BLOCKED && oldest !== undefined) this.#entries.delete(oldest)
    return entry
  }

  /** Latest first. */
  list(): readonly BlockedHost[] {
    return [...this.#entries.values()].toReversed()
  }
}
