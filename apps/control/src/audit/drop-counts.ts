/** How long events are counted before the count is recorded. Cloudflare ends work 30 seconds after the response. */
export const DROP_WINDOW_MS = 20_000
/** Sources that are counted at a time; beyond that, each dropped event is recorded as a count of its own. */
const MAX_SOURCES = 1_000

/** Number of dropped events and the time of the first. */
export interface DropCount {
  readonly dropped: number
  readonly sinceMs: number
}

export interface DropCountsDependencies<Source> {
  readonly record: (source: Source, count: DropCount) => Promise<void>
  readonly onFailure: (error: unknown, source: Source) => void
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
}

/**
 * Counts dropped events in memory. The first is recorded at once, so that a crash loses numbers but hides no gap; the others are
 * recorded together at the end of the window.
 */
export class DropCounts<Source> {
  readonly #deps: DropCountsDependencies<Source>
  /** Counts that are not recorded yet, by source. */
  readonly #counts = new Map<string, DropCount>()
  /** When the window of a source ends. */
  readonly #windows = new Map<string, number>()

  constructor(deps: DropCountsDependencies<Source>) {
    this.#deps = deps
  }

  /** Counts an event. Resolves when it is recorded, or at once if the end of its window will record it. */
  async count(key: string, source: Source): Promise<void> {
    const { nowMs, sleep } = this.#deps
    this.#add(key, { dropped: 1, sinceMs: nowMs() })
    const endMs = this.#windows.get(key)
    // The platform may have ended the request that would have recorded it.
    if (endMs !== undefined && nowMs() < endMs + DROP_WINDOW_MS) return
    if (this.#windows.size >= MAX_SOURCES) return this.#record(key, source)
    this.#windows.set(key, nowMs() + DROP_WINDOW_MS)
    await this.#record(key, source)
    await sleep(DROP_WINDOW_MS)
    this.#windows.delete(key)
    await this.#record(key, source)
  }

  #add(key: string, { dropped, sinceMs }: DropCount): void {
    const counted = this.#counts.get(key)
    if (counted === undefined && this.#counts.size >= 2 * MAX_SOURCES) return
    this.#counts.set(key, {
      dropped: (counted?.dropped ?? 0) + dropped,
      sinceMs: Math.min(counted?.sinceMs ?? sinceMs, sinceMs),
    })
  }

  async #record(key: string, source: Source): Promise<void> {
    const count = this.#counts.get(key)
    if (count === undefined) return
    this.#counts.delete(key)
    try {
      await this.#deps.record(source, count)
    } catch (error) {
      this.#deps.onFailure(error, source)
      // For the next event of the source.
      this.#add(key, count)
    }
  }
}
