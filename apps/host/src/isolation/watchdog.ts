/** A measurement that is repeated while a sandbox runs. */
export interface Watch {
  /** Pause before each look. */
  readonly everyMs: number
  /** Looks once, and acts. */
  readonly look: () => Promise<void> | void
}

/** A look may take this part of the time at most, so that watching a large sandbox does not load the machine. */
const BUSY_SHARE = 0.05

/** Pause after a look that took `tookMs`. */
export function pauseAfter(tookMs: number, everyMs: number): number {
  return Math.max(everyMs, tookMs / BUSY_SHARE)
}

/** Repeats the looks until disposed. */
export function startWatches(watches: readonly Watch[]): Disposable {
  let isOver = false
  const timers = new Set<ReturnType<typeof setTimeout>>()
  const schedule = (watch: Watch, delayMs: number): void => {
    if (isOver) return
    const timer = setTimeout(() => {
      timers.delete(timer)
      void run(watch)
    }, delayMs)
    timer.unref()
    timers.add(timer)
  }
  const run = async (watch: Watch): Promise<void> => {
    const startedMs = performance.now()
    try {
      await watch.look()
    } catch {
      // What it looks at may be vanishing; the next look tells.
    }
    schedule(watch, pauseAfter(performance.now() - startedMs, watch.everyMs))
  }
  for (const watch of watches) schedule(watch, watch.everyMs)
  return {
    [Symbol.dispose]: () => {
      isOver = true
      for (const timer of timers) clearTimeout(timer)
    },
  }
}
