export type ChangeKind = 'created' | 'changed' | 'removed'

export interface Change {
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
