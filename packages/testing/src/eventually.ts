/** Interval between checks: short enough not to slow tests, long enough not to load the machine. */
const POLL_INTERVAL_MS = 5

/** Enough for a loaded machine; a wait that succeeds returns at once. Below the timeout of a test, so that its error is reported. */
export const WAIT_TIMEOUT_MS = 60_000

/** The result of `eventually`: the value of the check without the values that mean "not yet". */
export type Settled<T> = Exclude<T, false | null | undefined>

export interface EventuallyOptions {
  /** What is awaited, for the error: `the session to end`. */
  readonly what: string
  /** Default 60,000. */
  readonly timeoutMs?: number
  /** Default 5; longer where each check is a request that a rate limit counts. */
  readonly intervalMs?: number
}

function isSettled<T>(value: T): value is T & Settled<T> {
  return value !== false && value !== null && value !== undefined
}

/**
 * Calls `check` until it returns something other than `false`, `null` or `undefined`, and returns that.
 * A check that throws is called again; on a timeout the last error becomes the cause.
 */
export async function eventually<T>(
  check: () => T | Promise<T>,
  { what, timeoutMs = WAIT_TIMEOUT_MS, intervalMs = POLL_INTERVAL_MS }: EventuallyOptions,
): Promise<Settled<T>> {
  const deadlineMs = performance.now() + timeoutMs
  for (;;) {
    let cause: unknown
    let last: string
    try {
      const value = await check()
      if (isSettled(value)) return value
      last = `last result was "${String(value)}"`
    } catch (error) {
      cause = error
      last = `last error was "${error instanceof Error ? error.message : String(error)}"`
    }
    if (performance.now() >= deadlineMs) {
      throw new Error(`Timed out after ${timeoutMs} ms waiting for ${what}: ${last}`, { cause })
    }
    await Bun.sleep(intervalMs)
  }
}
