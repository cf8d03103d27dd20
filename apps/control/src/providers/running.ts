import { withTimeout } from '@sandwire/async'

/** How old the answer may be, so that lists cost the provider little however often they are read. */
const FRESH_MS = 1_000
/** How long a list waits for the provider. */
const ANSWER_MS = 2_000

/** Ids of the running sandboxes of all accounts; undefined: not known. */
export type RunningSandboxes = (requestId: string) => Promise<ReadonlySet<string> | undefined>

/** Caches which sandboxes run. */
export function cacheRunning(
  read: (requestId: string) => Promise<ReadonlySet<string>>,
  nowMs: () => number,
): RunningSandboxes {
  let known: { readonly ids: ReadonlySet<string>; readonly atMs: number } | undefined
  return async (requestId) => {
    const startedMs = nowMs()
    if (known !== undefined && startedMs >= known.atMs && startedMs < known.atMs + FRESH_MS) return known.ids
    try {
      const late = (): Error => new Error('The provider does not respond')
      const ids = await withTimeout(read(requestId), ANSWER_MS, late)
      known = { ids, atMs: startedMs }
      return ids
    } catch {
      // The health of the provider is reported elsewhere.
      return undefined
    }
  }
}

/** True when a view contradicts the provider, and its sandbox must be asked. Changing states are reported by their own end. */
export function isOutdated(
  { id, state }: { readonly id: string; readonly state: string },
  running: ReadonlySet<string> | undefined,
): boolean {
  if (running === undefined) return false
  if (state === 'running') return !running.has(id)
  return (state === 'stopped' || state === 'failed') && running.has(id)
}
