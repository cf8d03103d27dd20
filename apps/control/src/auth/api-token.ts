import { isEqualInConstantTime, sha256Hex } from '../bytes.ts'
import type { AccountIds } from './account-id.ts'
import { type Identity, notAccepted, SCOPES } from './authenticator.ts'

/** One that is shorter could be guessed. */
export const MIN_API_TOKEN_CHARS = 32

/** Accepts the operator's one API token. Its account is nobody's else. */
export function apiToken(token: string, accounts: AccountIds): (shown: string) => Promise<Identity> {
  return async (shown) => {
    // Hashes have one length and are compared whole, so time tells nothing of the token.
    if (!isEqualInConstantTime(await sha256Hex(shown), await sha256Hex(token)))
      throw notAccepted('the token is not accepted')
    return { account: await accounts.of('api'), name: 'API token', scopes: SCOPES, via: 'bearer' }
  }
}
