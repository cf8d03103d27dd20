import { withTimeout } from '@sandwire/async'
import type { SandboxView } from '../sandbox/record.ts'

/** How old the answer may be, so that lists cost the provider little however often they are read. */
const FRESH_MS = 1_000
/** How long a list waits for the provider. */
const ANSWER_MS = 2_000

/** Sandboxes whose last question is remembered. */
const MAX_ASKED = 10_000

type State = Pick<SandboxView, 'id' | 'state'>

/** True when a stored view may not be true any more, and its sandbox must be asked. */
export type IsOutdated = (view: State) => boolean

/** Returns which views of a list are outdated. */
export type FindOutdated = (requestId: string) => Promise<IsOutdated>

/** For a provider that lists the ids of what runs, of all accounts: asks it at most once a second. */
export function compareWithRunning(
  read: (requestId: string) => Promise<ReadonlySet<string>>,
  nowMs: () => number,
): FindOutdated {
  let known: { readonly isOutdated: IsOutdated; readonly atMs: number } | undefined
  return async (requestId) => {
    const startedMs = nowMs()
    if (known !== undefined && startedMs >= known.atMs && startedMs < known.atMs + FRESH_MS)
      return known.isOutdated
    try {
      const late = (): Error => new Error('The provider does not respond')
      const ids = await withTimeout(read(requestId), ANSWER_MS, late)
      const isOutdated: IsOutdated = (view) => contradicts(view, ids)
      known = { isOutdated, atMs: startedMs }
      return isOutdated
    } catch {
      // The health of the provider is reported elsewhere.
      return () => false
    }
  }
}

/** For a provider that knows only each sandbox alone: asks those that were running, each at most once a second. */
export function askEachRunning(nowMs: () => number): FindOutdated {
  const askedMs = new Map<string, number>()
  const isOutdated: IsOutdated = ({ id, state }) => {
    const now = nowMs()
    if (state !== 'running' || now < (askedMs.get(id) ?? 0) + FRESH_MS) return false
    if (askedMs.size >= MAX_ASKED) askedMs.clear()
    askedMs.set(id, now)
    return true
  }
  return () => Promise.resolve(isOutdated)
}

/** Changing states are reported by their own end. */
function contradicts({ id, state }: State, running: ReadonlySet<string>): boolean {
  if (state === 'running') return !running.has(id)
  return (state === 'stopped' || state === 'failed') && running.has(id)
}
