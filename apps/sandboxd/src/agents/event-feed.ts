import type { JournalFile, StoredEntry } from './journal-file.ts'

/** Read from the journal at a time for one viewer. */
const BATCH_ENTRIES = 256
const BATCH_BYTES = 256 * 1024
/** Viewers of one run. */
export const MAX_VIEWERS = 64

/** One client that follows a run. */
export interface Viewer {
  /** Sends an entry. False: no more until `drained`. */
  send(entry: StoredEntry): boolean
  /** Sends a partial message, if the client keeps up. */
  partial(json: string): void
  /** The last event was sent. */
  end(): void
}

/** A viewer's place in the journal. */
interface Subscription {
  readonly viewer: Viewer
  lastSeq: number
  isBlocked: boolean
}

/** Sends a run's events or lines to any number of viewers, each at its own pace from the file. The run never waits for a viewer. */
export class EventFeed {
  readonly #journal: JournalFile
  readonly #viewers = new Map<Viewer, Subscription>()
  #isEnded: boolean

  constructor(journal: JournalFile, isEnded: boolean) {
    this.#journal = journal
    this.#isEnded = isEnded
  }

  get size(): number {
    return this.#viewers.size
  }

  add(viewer: Viewer, after: number): void {
    const subscription = { viewer, lastSeq: after, isBlocked: false }
    this.#viewers.set(viewer, subscription)
    this.#pump(subscription)
  }

  remove(viewer: Viewer): void {
    this.#viewers.delete(viewer)
  }

  drained(viewer: Viewer): void {
    const subscription = this.#viewers.get(viewer)
    if (subscription === undefined) return
    subscription.isBlocked = false
    this.#pump(subscription)
  }

  /** A new entry is in the journal. */
  appended(entry: StoredEntry): void {
    for (const subscription of this.#viewers.values()) {
      if (subscription.isBlocked) continue
      if (subscription.lastSeq === entry.seq - 1) this.#send(subscription, entry)
      else this.#pump(subscription)
    }
  }

  /** The last entry is in the file. */
  end(): void {
    this.#isEnded = true
    for (const subscription of this.#viewers.values()) this.#endIfDone(subscription)
  }

  /** Sends what is not stored. */
  partial(partial: object): void {
    if (this.#viewers.size === 0) return
    const json = JSON.stringify(partial)
    for (const { viewer, isBlocked } of this.#viewers.values()) if (!isBlocked) viewer.partial(json)
  }

  #send(subscription: Subscription, entry: StoredEntry): void {
    subscription.lastSeq = entry.seq
    if (!subscription.viewer.send(entry)) subscription.isBlocked = true
  }

  /** Sends what the viewer does not have yet, until it is full. */
  #pump(subscription: Subscription): void {
    while (!subscription.isBlocked && this.#viewers.has(subscription.viewer)) {
      const entries = this.#journal.read(subscription.lastSeq, BATCH_ENTRIES, BATCH_BYTES)
      if (entries.length === 0) break
      for (const entry of entries) {
        if (subscription.isBlocked) break
        this.#send(subscription, entry)
      }
    }
    this.#endIfDone(subscription)
  }

  #endIfDone({ viewer, lastSeq, isBlocked }: Subscription): void {
    if (!this.#isEnded || isBlocked || lastSeq < this.#journal.lastSeq) return
    if (this.#viewers.delete(viewer)) viewer.end()
  }
}
