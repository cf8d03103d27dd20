/** What is read of a body that nobody wants any more, and for how long. */
export interface DrainLimits {
  readonly maxBytes: number
  readonly timeMs: number
}

const DRAIN_LIMITS: DrainLimits = { maxBytes: 64 * 1024 * 1024, timeMs: 5_000 }

/**
 * Reads the rest of a body that was refused. A client that is still sending it when the connection is closed loses the answer,
 * which says why, with it. What is larger, or slower, is cut.
 */
export async function drainBody({ body }: Request, limits = DRAIN_LIMITS): Promise<void> {
  if (body === null || body.locked) return
  const reader = body.getReader()
  const timer = setTimeout(() => void reader.cancel().catch(() => undefined), limits.timeMs)
  try {
    for (let left = limits.maxBytes; left > 0;) {
      const { done, value } = await reader.read()
      if (done) return
      left -= value.byteLength
    }
  } catch {
    // The client is gone, and with it the body.
  } finally {
    clearTimeout(timer)
    reader.releaseLock()
  }
}
