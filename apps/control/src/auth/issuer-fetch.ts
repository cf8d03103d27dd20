import { isLoopbackUrl, isSecureUrl } from '@sandwire/internal'
import { SandwireError } from '@sandwire/protocol'
import { readBounded } from '../http/read-bounded.ts'
import { within } from '../http/within.ts'

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
  const ask = async (): Promise<Response | undefined> => {
    const response = await fetchUrl(url, {
      method: 'GET',
      headers: { accept: 'application/json' },
      redirect: 'manual',
      signal: AbortSignal.timeout(ASK_TIMEOUT_MS),
    })
    const text = await readBounded(response, MAX_ANSWER_BYTES)
    return text === undefined ? undefined : new Response(text, { status: response.status })
  }
  try {
    // The signal may not reach a body that trickles.
    return await within(ask(), ASK_TIMEOUT_MS, () => new Error('Too slow'))
  } catch {
    // Whatever broke, it did not answer: told by the undefined.
    return undefined
  }
}

/** Whether an address that the issuer itself names may be asked: it leads to this machine only if the issuer is there. */
export function isFitEndpoint(url: unknown, issuer: string): url is string {
  return typeof url === 'string' && isSecureUrl(url) && (!isLoopbackUrl(url) || isLoopbackUrl(issuer))
}
