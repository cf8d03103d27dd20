/** How often a check is asked again: short enough not to be felt, long enough not to load the machine. */
const POLL_INTERVAL_MS = 5

/** Enough for a loaded machine; a check that holds answers at once, so the size costs nothing. */
const DEFAULT_TIMEOUT_MS = 4_000

/** What `eventually` returns: the value of the check without the answers that mean "not yet". */
export type Settled<T> = Exclude<T, false | null | undefined>

export interface EventuallyOptions {
  /** What is awaited, for the error: `the session to end`. */
  readonly what: string
  /** Default 4,000, below the 5,000 of `bun test`, so that this error is the one that is seen. */
  readonly timeoutMs?: number
}

function isSettled<T>(value: T): value is T & Settled<T> {
  return value !== false && value !== null && value !== undefined
}

/**
 * Asks `check` until it returns something other than `false`, `null` or `undefined`, and returns that.
 * A check that throws is asked again; the last error becomes the cause when time is up.
 */
export async function eventually<T>(
  check: () => T | Promise<T>,
  { what, timeoutMs = DEFAULT_TIMEOUT_MS }: EventuallyOptions,
): Promise<Settled<T>> {
  const deadlineMs = performance.now() + timeoutMs
  for (;;) {
    let cause: unknown
    let last: string
    try {
      const value = await check()
      if (isSettled(value)) return value
      last = `last answer was "${String(value)}"`
    } catch (error) {
      cause = error
      last = `last error was "${error instanceof Error ? error.message : String(error)}"`
    }
    if (performance.now() >= deadlineMs) {
      throw new Error(`Timed out after ${timeoutMs} ms waiting for ${what}: ${last}`, { cause })
    }
    await Bun.sleep(POLL_INTERVAL_MS)
  }
}
