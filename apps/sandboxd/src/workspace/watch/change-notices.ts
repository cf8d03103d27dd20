/** Why changes may be missing. */
type OverflowReason =
  /** The kernel's queue overflowed. */
  | 'queue'
  /** There are more folders than can be watched. */
  | 'folders'
  /** More changes happened than are queued for a slow client. */
  | 'changes'

export type Notice =
  /** Sent first: from now on every change is reported. */
  | { readonly kind: 'ready'; readonly folders: number }
  | { readonly kind: 'change'; readonly changes: readonly Change[] }
  | { readonly kind: 'overflow'; readonly reason: OverflowReason }

/**
 * Queues notices for one client. Changes are sent together after a quiet period; the limits bound the queue however slow the
 * client is.
 */
export class NoticeQueue {
  readonly #batch: ChangeBatch
  readonly #now: () => number
  readonly #overflows = new Set<OverflowReason>()
  /** Number of folders once all are watched, until it is sent. */
  #ready: number | 'pending' | 'sent' = 'pending'
  /** No notice follows the queued ones. */
  #isLast = false
  #wake: () => void = () => undefined

  constructor(limits: BatchLimits, now: () => number) {
    this.#batch = new ChangeBatch(limits)
    this.#now = now
  }

  ready(folders: number): void {
    if (this.#ready === 'pending') this.#ready = folders
    this.#wake()
  }

  add(change: Change): void {
    if (this.#isLast) return
    if (!this.#batch.add(change, this.#now())) this.#overflows.add('changes')
    this.#wake()
  }

  overflow(reason: OverflowReason): void {
    if (this.#isLast) return
    this.#overflows.add(reason)
    this.#wake()
  }

  /** Ends the queue after the notices in it. */
  end(): void {
    this.#isLast = true
    if (this.#ready === 'pending') this.#ready = 0
    this.#wake()
  }

  /** Waits for the next notice; undefined at the end. One call at a time. */
  async next(): Promise<Notice | undefined> {
    for (;;) {
      const notice = this.#take()
      if (notice !== undefined) return notice
      if (this.#isLast) return undefined
      await this.#sleep(this.#ready === 'sent' ? this.#batch.dueMs(this.#now()) : undefined)
    }
  }

  #take(): Notice | undefined {
    if (this.#ready === 'pending') return undefined
    if (this.#ready !== 'sent') {
      const folders = this.#ready
      this.#ready = 'sent'
      return { kind: 'ready', folders }
    }
    const [reason] = this.#overflows
    if (reason !== undefined) {
      this.#overflows.delete(reason)
      return { kind: 'overflow', reason }
    }
    const dueMs = this.#batch.dueMs(this.#now())
    if (dueMs === undefined || (dueMs > 0 && !this.#isLast)) return undefined
    return { kind: 'change', changes: this.#batch.take() }
  }

  /** Waits for a notice or the timeout. */
  #sleep(ms: number | undefined): Promise<void> {
    return new Promise((resolve) => {
      const timer = ms === undefined ? undefined : setTimeout(resolve, ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

export type ChangeKind = 'created' | 'changed' | 'removed'

interface Change {
  readonly path: string
  readonly kind: ChangeKind
}

export interface BatchLimits {
  /** Quiet period after which a batch is sent. */
  readonly quietMs: number
  /** A batch is sent after this time even if changes continue. */
  readonly maxWaitMs: number
  /** Paths in a batch; more are reported as an overflow. */
  readonly maxPaths: number
}

/** Result of two changes of the same path; undefined when they cancel out. */
const MERGED: Readonly<Record<ChangeKind, Readonly<Record<ChangeKind, ChangeKind | undefined>>>> = {
  created: { created: 'created', changed: 'created', removed: undefined },
  changed: { created: 'changed', changed: 'changed', removed: 'removed' },
  removed: { created: 'changed', changed: 'changed', removed: 'removed' },
}

/** Changes that are sent together, each path once. */
export class ChangeBatch {
  readonly #limits: BatchLimits
  readonly #changes = new Map<string, ChangeKind>()
  #firstMs = 0
  #lastMs = 0

  constructor(limits: BatchLimits) {
    this.#limits = limits
  }

  /** Returns false, and drops all, when there are too many. */
  add({ path, kind }: Change, nowMs: number): boolean {
    if (this.#changes.size === 0) this.#firstMs = nowMs
    this.#lastMs = nowMs
    const before = this.#changes.get(path)
    const merged = before === undefined ? kind : MERGED[before][kind]
    // Moves it after earlier changes.
    this.#changes.delete(path)
    if (merged !== undefined) this.#changes.set(path, merged)
    if (this.#changes.size <= this.#limits.maxPaths) return true
    this.#changes.clear()
    return false
  }

  /** Milliseconds until the batch is due; undefined when it is empty. */
  dueMs(nowMs: number): number | undefined {
    if (this.#changes.size === 0) return undefined
    const { quietMs, maxWaitMs } = this.#limits
    return Math.max(0, Math.min(this.#lastMs + quietMs, this.#firstMs + maxWaitMs) - nowMs)
  }

  take(): Change[] {
    const changes = Array.from(this.#changes, ([path, kind]): Change => ({ path, kind }))
    this.#changes.clear()
    return changes
  }
}
