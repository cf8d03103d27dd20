/** Attempts of an idempotent call, the first included. */
export const MAX_ATTEMPTS = 3
/** Longest delay before the second attempt; it doubles. */
const BASE_DELAY_MS = 60

/** Delay before attempt `attempt` (2, 3 …), with jitter. */
export function delayBefore(attempt: number, random: number): number {
  return BASE_DELAY_MS * 2 ** (attempt - 2) * (0.5 + random / 2)
}

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
    await options.sleep(delayBefore(attempt + 1, options.random()))
  }
}
