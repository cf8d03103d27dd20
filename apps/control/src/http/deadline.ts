import { withTimeout } from '@sandwire/async'

/** How long something may take, and what is thrown when that is over. */
export interface Deadline {
  readonly ms: number
  readonly late: () => Error
}

/**
 * Does what has to be over in time, such as a request with the reading of its answer. When it is not, its signal says why, so
 * that nothing of it stays open; nobody waits for what does not listen to that.
 */
export async function withDeadline<T>(
  { ms, late }: Deadline,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const ending = new AbortController()
  return withTimeout(work(ending.signal), ms, () => {
    const reason = late()
    ending.abort(reason)
    return reason
  })
}
