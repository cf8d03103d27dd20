/** A server on this machine answers at once; one that does not within this time is not worth waiting for. */
const PROBE_MS = 1_000

/** Says whether a server runs at this address. */
export type Probe = (url: string) => Promise<boolean>

/** Asks the address for its health, without a credential: whoever listens there now may be somebody else. */
export const probeServer: Probe = async (url) => {
  try {
    const response = await fetch(new URL('/healthz', url), {
      redirect: 'manual',
      signal: AbortSignal.timeout(PROBE_MS),
    })
    const answer: unknown = response.ok ? await response.json() : undefined
    return typeof answer === 'object' && answer !== null && 'status' in answer && answer.status === 'ok'
  } catch {
    // Nobody listens, or not one of ours: told by the answer.
    return false
  }
}
