import { withTimeout } from '@sandwire/async'

/** A time limit and the error to throw when it is exceeded. */
export interface Deadline {
  readonly ms: number
  readonly late: () => Error
}

/**
 * Runs work with a time limit, such as a request and the reading of its response. When the limit is exceeded, aborts the
 * work's signal and throws, without waiting for work that ignores the signal.
 */
export async function withDeadline<T>(
  { ms, late }: Deadline,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  return withTimeout(work(controller.signal), ms, () => {
    const reason = late()
    controller.abort(reason)
    return reason
  })
}
