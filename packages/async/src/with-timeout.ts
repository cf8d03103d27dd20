/** Resolves to `fallback` if the work takes longer than `ms`. The work itself is not canceled. */
export async function raceTimeout<T, const F>(work: Promise<T>, ms: number, fallback: F): Promise<T | F> {
  const { promise, resolve } = Promise.withResolvers<F>()
  const timer = setTimeout(() => resolve(fallback), ms)
  try {
    return await Promise.race([work, promise])
  } finally {
    // A running timer keeps a process alive and a Durable Object from hibernating.
    clearTimeout(timer)
  }
}

/** Rejects with the error from `createError` if the work takes longer than `ms`. The work itself is not canceled. */
export async function withTimeout<T>(work: Promise<T>, ms: number, createError: () => Error): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(createError()), ms)
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}
