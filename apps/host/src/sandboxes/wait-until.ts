/** How often a process is looked at; looking costs microseconds. */
const LOOK_EVERY_MS = 5

/** Looks until something holds; false when it does not in time. */
export async function waitUntil(holds: () => boolean, timeoutMs: number): Promise<boolean> {
  const deadlineMs = performance.now() + timeoutMs
  while (!holds()) {
    if (performance.now() > deadlineMs) return false
    await Bun.sleep(LOOK_EVERY_MS)
  }
  return true
}
