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

/** Stands for a value that did not come in time. */
export const LATE: unique symbol = Symbol('late')

/** The value of a promise, or `LATE`. */
export async function within<T>(timeoutMs: number, work: Promise<T>): Promise<T | typeof LATE> {
  const { promise, resolve } = Promise.withResolvers<typeof LATE>()
  const timer = setTimeout(() => resolve(LATE), timeoutMs)
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}
