import { backOffMs, SandwireError } from '@sandwire/protocol'
import type { CopyReport } from './progress.ts'
import type { RemoteWorkspace } from './remote-workspace.ts'
import { Interrupted } from '../errors/errors.ts'

/** Attempts in a row that get nothing done; with the pauses between them, most of a minute. */
const MAX_VAIN_ATTEMPTS = 10

export interface RetryOptions {
  readonly signal: AbortSignal
  /** Grows whenever something was achieved, so that a long copy may be cut any number of times. */
  readonly progress: () => number
  /** Told before each pause. */
  readonly onRetry?: (error: SandwireError) => void
}

/** Does something again after failures that pass, with growing pauses. Throws the last error, or `Interrupted`. */
export async function retry<T>(action: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { signal, progress, onRetry } = options
  let vain = 0
  for (;;) {
    const before = progress()
    try {
      return await action()
    } catch (caught) {
      if (signal.aborted) throw new Interrupted(String(signal.reason))
      if (caught instanceof Interrupted) throw caught
      const error = SandwireError.from(caught)
      if (!error.row.retryable || error.code === 'internal') throw caught
      vain = progress() > before ? 1 : vain + 1
      if (vain >= MAX_VAIN_ATTEMPTS) throw caught
      onRetry?.(error)
      await pause(error.retryAfterMs ?? backOffMs(vain, Math.random()), signal)
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
  if (signal.aborted) throw new Interrupted(String(signal.reason))
}

/** What every part of one copy works with. */
export interface Transfer {
  readonly remote: RemoteWorkspace
  readonly report: CopyReport
  readonly signal: AbortSignal
}

/** Does a part of the copy again after cuts, and shows that it waits. */
export function retryTransfer<T>(
  { report, signal }: Transfer,
  action: () => Promise<T>,
  progress: () => number,
): Promise<T> {
  const onRetry = (error: SandwireError): void => report.stalled(`${error.message}: trying again`)
  return retry(action, { signal, progress, onRetry })
}
