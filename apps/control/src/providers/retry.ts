import { backOffMs } from '@sandwire/protocol'

/** Attempts of an idempotent call, the first included. */
export const MAX_ATTEMPTS = 3
const DELAYS = { firstMs: 60, maxMs: 120 }

export interface RetryOptions {
  readonly isWorthRetrying: (error: unknown) => boolean
  readonly sleep: (ms: number) => Promise<void>
  readonly random: () => number
}

/** Runs an idempotent call until it succeeds, fails with an error not worth retrying, or reaches the last attempt. */
export async function retryIdempotent<T>(run: () => Promise<T>, options: RetryOptions): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run()
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || !options.isWorthRetrying(error)) throw error
    }
    await options.sleep(backOffMs(attempt, options.random(), DELAYS))
  }
}
