import type { Refusal } from './policy.ts'

/** A target that was refused lately. */
export interface BlockedHost {
  readonly host: string
  readonly port: number
  readonly reason: Refusal
  readonly count: number
}

/** Targets that are remembered; the one refused longest ago is forgotten first. */
const MAX_BLOCKED = 100

/** Counts refusals per host and port. */
export class BlockedHosts {
  readonly #entries = new Map<string, BlockedHost>()

  /** Returns the entry as it is now. */
  add(host: string, port: number, reason: Refusal): BlockedHost {
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
