import type { Log } from '../log.ts'
import { deleteFork, readForks } from './fork-records.ts'
import { segmentKey, type SegmentStore } from './segment-store.ts'
import { type Fork, UNUSED_MS, type VersionStore } from './version-store.ts'

/** How often it is asked whether a fork still needs segments that nothing else needs. */
const FORK_CHECK_MS = 24 * 60 * 60 * 1000
/** A segment that is not needed is deleted after this time, instead of an hour, when its account may store no more. */
const FULL_UNUSED_MS = 60 * 1000
/** After a failure of the store. */
const RETRY_MS = 5 * 60 * 1000

export interface GarbageDependencies {
  readonly store: VersionStore
  /** Undefined: files are not saved. */
  readonly segments: SegmentStore | undefined
  /** The sandbox, also after it was destroyed; undefined: there is none. */
  readonly sandbox: () => string | undefined
  /** A save has stored segments that no version needs yet. */
  readonly isSaving: () => boolean
  /** The account may store no more. */
  readonly isFull: () => boolean
  /** True when a fork still needs segments that it did not make. */
  readonly needsSegments: (fork: string) => Promise<boolean>
  readonly nowMs: () => number
  readonly log: Log
}

/** Deletes versions that are not to be kept, and segments that no version and no fork needs. */
export class Garbage {
  readonly #deps: GarbageDependencies
  #retryMs = 0

  constructor(deps: GarbageDependencies) {
    this.#deps = deps
  }

  /** When there is something to do; undefined: never. */
  nextMs(): number | undefined {
    const { store, segments } = this.#deps
    if (segments === undefined) return undefined
    const checks = store.forks().map(({ checkedMs }) => checkedMs + FORK_CHECK_MS)
    const { firstUnusedMs } = store
    const unused = firstUnusedMs === undefined ? undefined : firstUnusedMs + this.#unusedMs
    const times = [unused, store.nextExpiryMs, ...checks].filter((time) => time !== undefined)
    return times.length === 0 ? undefined : Math.max(this.#retryMs, Math.min(...times))
  }

  get #unusedMs(): number {
    return this.#deps.isFull() ? FULL_UNUSED_MS : UNUSED_MS
  }

  /** Called by the alarm, which also fires for other reasons. Returns the number of deleted segments. */
  async onAlarm(): Promise<number> {
    const { nowMs, log } = this.#deps
    const dueMs = this.nextMs()
    if (dueMs === undefined || nowMs() < dueMs) return 0
    try {
      return await this.collect()
    } catch (error) {
      this.#retryMs = nowMs() + RETRY_MS
      log.warn('garbage_not_collected', { sandbox: this.#deps.sandbox() ?? '', cause: String(error) })
      return 0
    }
  }

  /** Deletes what is not needed any more. Returns the number of segments. */
  async collect(): Promise<number> {
    const { store, segments, nowMs, isSaving } = this.#deps
    const sandbox = this.#deps.sandbox()
    if (segments === undefined || sandbox === undefined || isSaving()) return 0
    for (const fork of store.forks()) await this.#checkFork(sandbox, fork)
    store.prune(nowMs())
    if (store.unused(nowMs(), this.#unusedMs).length > 0) await this.#findForks(sandbox)
    const unused = store.unused(nowMs(), this.#unusedMs)
    for (const { id, lineage } of unused) {
      // What another sandbox made is deleted by that one.
      if (lineage === sandbox) await segments.delete(segmentKey(lineage, id))
      store.removeSegment(id)
    }
    return unused.length
  }

  /** Deletes all segments of a destroyed sandbox that no fork needs, also those of saves that were not completed. */
  async deleteAll(sandbox: string): Promise<void> {
    const { store, segments } = this.#deps
    if (segments === undefined) return
    await this.#findForks(sandbox)
    const kept = new Set(store.forks().flatMap((fork) => fork.segments.map((id) => segmentKey(sandbox, id))))
    let after: string | undefined
    do {
      const keys = await segments.list(segmentKey(sandbox, ''), after)
      for (const key of keys) if (!kept.has(key)) await segments.delete(key)
      after = keys.at(-1)
    } while (after !== undefined)
  }

  /** Adds forks that are recorded in the store and not in the list, as after the database was restored from a backup. */
  async #findForks(sandbox: string): Promise<void> {
    const { store, segments, nowMs } = this.#deps
    if (segments === undefined) return
    const known = new Set(store.forks().map((fork) => fork.sandbox))
    for await (const record of readForks(segments, sandbox, known)) store.addFork(record, nowMs())
  }

  async #checkFork(parent: string, { sandbox, checkedMs }: Fork): Promise<void> {
    const { store, segments, nowMs, needsSegments } = this.#deps
    // A new fork may not have taken over its version yet.
    if (nowMs() < checkedMs + UNUSED_MS) return
    if (await needsSegments(sandbox)) return store.setForkChecked(sandbox, nowMs())
    if (segments !== undefined) await deleteFork(segments, parent, sandbox)
    store.removeFork(sandbox)
  }
}
