import { MAX_TOMBSTONES } from './limits.ts'

export type CreateClaim =
  /** Not used before; recorded for the caller, which creates the session. */
  | { readonly kind: 'new' }
  /** The session this id created. */
  | { readonly kind: 'existing'; readonly session: string }
  /** Used before with other parameters. */
  | { readonly kind: 'conflict' }
  /** Its session has ended; the id never creates another. */
  | { readonly kind: 'gone' }

interface Entry {
  readonly session: string
  readonly fingerprint: string
  alive: boolean
}

/**
 * Remembers create ids per principal, so that a request whose response was lost can be repeated without starting a second
 * process. Ids of ended sessions stay as tombstones; beyond the limit the oldest are forgotten.
 */
export class CreateLedger {
  readonly #entries = new Map<string, Entry>()
  readonly #keyOfSession = new Map<string, string>()
  /** Tombstones, oldest first. */
  readonly #tombstones = new Set<string>()
  readonly #maxTombstones: number

  constructor(maxTombstones: number = MAX_TOMBSTONES) {
    this.#maxTombstones = maxTombstones
  }

  /** Looks the id up, and records it for `session` when it is new. */
  claim(create: { principal: string; createId: string; fingerprint: string; session: string }): CreateClaim {
    const key = JSON.stringify([create.principal, create.createId])
    const known = this.#entries.get(key)
    if (known === undefined) {
      this.#entries.set(key, { session: create.session, fingerprint: create.fingerprint, alive: true })
      this.#keyOfSession.set(create.session, key)
      return { kind: 'new' }
    }
    if (known.fingerprint !== create.fingerprint) return { kind: 'conflict' }
    return known.alive ? { kind: 'existing', session: known.session } : { kind: 'gone' }
  }

  /** The session has ended: its id becomes a tombstone. */
  markEnded(session: string): void {
    const key = this.#keyOfSession.get(session)
    const entry = key === undefined ? undefined : this.#entries.get(key)
    if (key === undefined || entry === undefined) return
    this.#keyOfSession.delete(session)
    entry.alive = false
    this.#tombstones.add(key)
    for (const oldest of this.#tombstones) {
      if (this.#tombstones.size <= this.#maxTombstones) break
      this.#tombstones.delete(oldest)
      this.#entries.delete(oldest)
    }
  }

  /** Forgets the id of a session whose process never started, so that it can be used again. */
  release(session: string): void {
    const key = this.#keyOfSession.get(session)
    if (key === undefined) return
    this.#keyOfSession.delete(session)
    this.#entries.delete(key)
  }

  get size(): number {
    return this.#entries.size
  }
}
