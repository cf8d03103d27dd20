import { SandwireError } from '@sandwire/protocol'
import type { SessionFacts } from './session-view.ts'

/** Between two looks whether a process has ended, doubling up to the second one. */
const MIN_POLL_MS = 20
const MAX_POLL_MS = 500

export interface Waiting {
  /** How the session is, as its caller may see it; throws when they may not any more. */
  readonly show: () => Promise<SessionFacts>
  /** Ends it, whatever its caller may do by now. */
  readonly end: () => Promise<unknown>
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
}

/**
 * The session of a process that has exited. A process that takes too long, or that its caller cannot wait for any more, is
 * ended: nobody else would.
 */
export async function waitForExit(
  started: SessionFacts,
  timeoutMs: number,
  { show, end, nowMs, sleep }: Waiting,
): Promise<SessionFacts & { readonly exit: NonNullable<SessionFacts['exit']> }> {
  const deadlineMs = nowMs() + timeoutMs
  try {
    let facts = started
    for (let waitMs = MIN_POLL_MS; facts.exit === null && nowMs() < deadlineMs; waitMs *= 2) {
      await sleep(Math.min(waitMs, MAX_POLL_MS))
      facts = await show()
    }
    const { exit } = facts
    if (exit === null) throw new SandwireError('timed_out', 'The process did not end in time')
    return { ...facts, exit }
  } catch (error) {
    // Why it is not waited for matters more than that it could not be ended, as in a sandbox that is gone.
    await end().catch(() => undefined)
    throw error
  }
}
