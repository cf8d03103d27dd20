/** Waits for the work no longer than this; `late` makes what is thrown then. */
export async function within<T>(work: Promise<T>, ms: number, late: () => Error): Promise<T> {
  const { promise: limit, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(late()), ms)
  try {
    return await Promise.race([work, limit])
  } finally {
    // A timer that is left running keeps an object from hibernating.
    clearTimeout(timer)
  }
}
