import { isLoopbackUrl, isSecureUrl } from '@sandwire/operator-settings'
import { SandwireError } from '@sandwire/protocol'
import { withDeadline } from '../http/deadline.ts'
import { readBounded } from '../http/read-bounded.ts'

/** Longest that an issuer may take for an answer, with its body. */
export const ASK_TIMEOUT_MS = 5_000
/** Metadata and keys of the largest issuers are a tenth of this. */
const MAX_ANSWER_BYTES = 256 * 1024

/** After an issuer did not answer, nobody waits for it again for so long. */
export const AWAY_MS = 5_000

/** The way out to issuers. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** An issuer cannot be asked now. Nobody is let in, and nobody is told that their token is bad. */
export function issuerAway(name: string, why: string): SandwireError {
  return new SandwireError('issuer_unavailable', `Cannot check the token: ${name} ${why}`, {
    retryAfterMs: AWAY_MS,
  })
}

/** Asks an issuer; follows no redirect, waits and reads no more than it should. Undefined: it did not answer, or too much. */
export async function askIssuer(fetchUrl: Fetch, url: string): Promise<Response | undefined> {
  const ask = async (signal: AbortSignal): Promise<Response | undefined> => {
    const headers = { accept: 'application/json' }
    const response = await fetchUrl(url, { method: 'GET', headers, redirect: 'manual', signal })
    const text = await readBounded(response, MAX_ANSWER_BYTES, signal)
    return text === undefined ? undefined : new Response(text, { status: response.status })
  }
  try {
    return await withDeadline({ ms: ASK_TIMEOUT_MS, late: () => new Error('Too slow') }, ask)
  } catch {
    // Whatever broke, it did not answer: told by the undefined.
    return undefined
  }
}

/** Whether an address that the issuer itself names may be asked: it leads to this machine only if the issuer is there. */
export function isFitEndpoint(url: unknown, issuer: string): url is string {
  return typeof url === 'string' && isSecureUrl(url) && (!isLoopbackUrl(url) || isLoopbackUrl(issuer))
}
