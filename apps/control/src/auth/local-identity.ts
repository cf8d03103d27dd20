import { withTimeout } from '@sandwire/async'
import { SandwireError } from '@sandwire/protocol'
import { isEqualInConstantTime, sha256Hex } from '../bytes.ts'
import { type Identity, SCOPES, unauthorized } from './identity.ts'

/** The account of the machine's owner, on a server that runs on one machine. */
export const LOCAL_ACCOUNT = 'local'

/** The machine's owner has every scope. */
export const LOCAL_IDENTITY: Omit<Identity, 'via'> = { account: LOCAL_ACCOUNT, name: 'owner', scopes: SCOPES }

const PREFIX = 'swl_'
const LOCAL_TOKEN = /^swl_[A-Za-z0-9_-]{43}$/

/** True if a bearer has the prefix of the local token. */
export function isLocalToken(token: string): boolean {
  return token.startsWith(PREFIX)
}

/** Verifies the token that the host wrote for the machine's owner. Only its hash is known here. */
export function verifyLocalToken(tokenSha256: string): (token: string) => Promise<Identity> {
  return async (token) => {
    if (!LOCAL_TOKEN.test(token) || !isEqualInConstantTime(await sha256Hex(token), tokenSha256))
      throw unauthorized('the token is not accepted')
    return { ...LOCAL_IDENTITY, via: 'bearer' }
  }
}

const REDEEM_TIMEOUT_MS = 5_000

/** Redeems a sign-in code that the host printed; each is valid once. */
export type RedeemCode = (code: string, requestId: string) => Promise<boolean>

export function redeemAtHost(fetchHost: (url: string, init: RequestInit) => Promise<Response>): RedeemCode {
  const unavailable = (): SandwireError =>
    new SandwireError('provider_unavailable', 'Cannot sign in: the host does not respond')
  return async (code, requestId) => {
    const headers = { 'content-type': 'application/json', 'x-request-id': requestId }
    const init = { method: 'POST', headers, body: JSON.stringify({ code }), redirect: 'manual' } as const
    try {
      // Not retried: the first attempt may have used up the code.
      const request = fetchHost('http://host/signin/redeem', init)
      const response = await withTimeout(request, REDEEM_TIMEOUT_MS, unavailable)
      await response.body?.cancel()
      return response.status === 204
    } catch {
      throw unavailable()
    }
  }
}
