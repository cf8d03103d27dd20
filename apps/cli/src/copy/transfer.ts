import { backOffMs, SandwireError } from '@sandwire/protocol'
import type { CopyReport } from './progress.ts'
import type { RemoteWorkspace } from './remote-workspace.ts'
import { InterruptedError } from '../errors/errors.ts'

/** Attempts in a row without progress; with the pauses, most of a minute. */
const MAX_FAILED_ATTEMPTS = 10

export interface RetryOptions {
  readonly signal: AbortSignal
  /** Grows with progress; a copy that makes progress is retried any number of times. */
  readonly progress: () => number
  /** Called before each pause. */
  readonly onRetry?: (error: SandwireError) => void
}

/** Retries an action after transient errors, with back-off. Throws the last error, or `InterruptedError`. */
export async function retry<T>(action: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { signal, progress, onRetry } = options
  let failedAttempts = 0
  for (;;) {
    const before = progress()
    try {
      return await action()
    } catch (caught) {
      if (signal.aborted) throw new InterruptedError(String(signal.reason))
      if (caught instanceof InterruptedError) throw caught
      const error = SandwireError.from(caught)
      if (!error.info.retryable || error.code === 'internal') throw caught
      failedAttempts = progress() > before ? 1 : failedAttempts + 1
      if (failedAttempts >= MAX_FAILED_ATTEMPTS) throw caught
      onRetry?.(error)
      await pause(error.retryAfterMs ?? backOffMs(failedAttempts, Math.random()), signal)
    }
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  const stop = (): void => resolve()
  signal.addEventListener('abort', stop, { once: true })
  await promise
  clearTimeout(timer)
  signal.removeEventListener('abort', stop)
  if (signal.aborted) throw new InterruptedError(String(signal.reason))
}

/** Bytes of one upload request, at most: large enough for few requests, small enough to send again. */
export const MAX_REQUEST_BYTES = 8 * 1024 * 1024

/** What all parts of one copy share. */
export interface Transfer {
  readonly remote: RemoteWorkspace
  readonly report: CopyReport
  readonly signal: AbortSignal
}

/** Retries a part of the copy, and shows that it is waiting. */
export function retryTransfer<T>(
  { report, signal }: Transfer,
  action: () => Promise<T>,
  progress: () => number,
): Promise<T> {
  const onRetry = (error: SandwireError): void => report.stalled(`${error.message}: retrying`)
  return retry(action, { signal, progress, onRetry })
}
