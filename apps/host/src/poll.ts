import { setTimeout as sleep } from 'node:timers/promises'

/** A check costs microseconds. */
const POLL_INTERVAL_MS = 5

/** Polls until the condition is true, for what the kernel does not announce; resolves with false after `timeoutMs`. */
export async function pollUntil(condition: () => boolean, timeoutMs: number): Promise<boolean> {
  const deadlineMs = performance.now() + timeoutMs
  while (!condition()) {
    if (performance.now() > deadlineMs) return false
    await sleep(POLL_INTERVAL_MS)
  }
  return true
}
