import { withTimeout } from '@sandwire/async'
import { SandwireError } from '@sandwire/protocol'

const TIMEOUT_MS = 5_000

/** Redeems codes that the host printed; it knows each once. */
export type RedeemCode = (code: string, requestId: string) => Promise<boolean>

export function redeemAtHost(askHost: (url: string, init: RequestInit) => Promise<Response>): RedeemCode {
  const away = (): SandwireError =>
    new SandwireError('provider_unavailable', 'Cannot sign in: the host does not answer')
  return async (code, requestId) => {
    const headers = { 'content-type': 'application/json', 'x-request-id': requestId }
    const init = { method: 'POST', headers, body: JSON.stringify({ code }), redirect: 'manual' } as const
    try {
      // Never tried again: a code that was redeemed by the first attempt is burnt.
      const response = await withTimeout(askHost('http://host/signin/redeem', init), TIMEOUT_MS, away)
      await response.body?.cancel()
      return response.status === 204
    } catch {
      throw away()
    }
  }
}
