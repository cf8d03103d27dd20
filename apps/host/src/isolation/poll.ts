import { setTimeout as sleep } from 'node:timers/promises'

/** How often what is about to change is looked at. */
const POLL_MS = 5

/** Looks until the condition holds; resolves with whether it did in time. For what the kernel does not announce. */
export async function pollUntil(condition: () => boolean, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs
  while (!condition()) {
    if (performance.now() > deadline) return false
    await sleep(POLL_MS)
  }
  return true
}
