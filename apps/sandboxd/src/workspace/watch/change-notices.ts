/** Why something may have happened that is not told. */
type OverflowReason =
  /** Faster than it could be taken from the kernel. */
  | 'queue'
  /** More folders than can be watched. */
  | 'folders'
  /** More changes than are kept until the client takes them. */
  | 'changes'

/** What whoever watches is told. */
export type Notice =
  /** From now on everything is told. Comes first. */
  | { readonly kind: 'ready'; readonly folders: number }
  | { readonly kind: 'change'; readonly changes: readonly Change[] }
  | { readonly kind: 'overflow'; readonly reason: OverflowReason }

/**
 * What is to be told, until somebody takes it: changes together when it has been quiet, and no more of them than the limits say
 * however slowly they are taken.
 */
export class NoticeQueue {
  readonly #batch: ChangeBatch
  readonly #now: () => number
  readonly #overflows = new Set<OverflowReason>()
  /** Number of folders, when all of them are watched; then told. */
  #ready: number | 'awaited' | 'told' = 'awaited'
  /** Nothing follows what is kept. */
  #isLast = false
  #wake: () => void = () => undefined

  constructor(limits: BatchLimits, now: () => number) {
    this.#batch = new ChangeBatch(limits)
    this.#now = now
  }

  ready(folders: number): void {
    if (this.#ready === 'awaited') this.#ready = folders
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

  /** What is kept is still told, then no more. */
  end(): void {
    this.#isLast = true
    if (this.#ready === 'awaited') this.#ready = 0
    this.#wake()
  }

  /** Waits for something to tell; undefined at the end. One at a time. */
  async next(): Promise<Notice | undefined> {
    for (;;) {
      const notice = this.#take()
      if (notice !== undefined) return notice
      if (this.#isLast) return undefined
      await this.#sleep(this.#ready === 'told' ? this.#batch.dueMs(this.#now()) : undefined)
    }
  }

  #take(): Notice | undefined {
    if (this.#ready === 'awaited') return undefined
    if (this.#ready !== 'told') {
      const folders = this.#ready
      this.#ready = 'told'
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

  /** Until something comes, or until it is time. */
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
  /** Nothing has happened for this long: what is there is told. */
  readonly quietMs: number
  /** It is told after this long, even if more happens. */
  readonly maxWaitMs: number
  /** Paths that are kept until they are told; more are only said to be many. */
  readonly maxPaths: number
}

/** What one change and a later one of the same path come to; undefined when that is nothing. */
const MERGED: Readonly<Record<ChangeKind, Readonly<Record<ChangeKind, ChangeKind | undefined>>>> = {
  created: { created: 'created', changed: 'created', removed: undefined },
  changed: { created: 'changed', changed: 'changed', removed: 'removed' },
  removed: { created: 'changed', changed: 'changed', removed: 'removed' },
}

/** Changes that are told together: each path once, by what came of it. */
export class ChangeBatch {
  readonly #limits: BatchLimits
  readonly #changes = new Map<string, ChangeKind>()
  #firstMs = 0
  #lastMs = 0

  constructor(limits: BatchLimits) {
    this.#limits = limits
  }

  /** False when there are too many: then none is kept. */
  add({ path, kind }: Change, nowMs: number): boolean {
    if (this.#changes.size === 0) this.#firstMs = nowMs
    this.#lastMs = nowMs
    const before = this.#changes.get(path)
    const merged = before === undefined ? kind : MERGED[before][kind]
    // Behind those that happened before it.
    this.#changes.delete(path)
    if (merged !== undefined) this.#changes.set(path, merged)
    if (this.#changes.size <= this.#limits.maxPaths) return true
    this.#changes.clear()
    return false
  }

  /** Milliseconds until it is time to tell, 0 when it is; undefined when there is nothing. */
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
