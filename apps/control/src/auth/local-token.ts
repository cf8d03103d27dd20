import { isEqualInConstantTime, sha256Hex } from '../bytes.ts'
import { type Identity, notAccepted, SCOPES } from './authenticator.ts'

/** The one person of a server that runs on one machine. */
export const LOCAL_ACCOUNT = 'local'

/** Its person owns the machine, and so may do everything. */
export const LOCAL_IDENTITY: Omit<Identity, 'via'> = { account: LOCAL_ACCOUNT, name: 'owner', scopes: SCOPES }

const PREFIX = 'swl_'
const LOCAL_TOKEN = /^swl_[A-Za-z0-9_-]{43}$/

/** Whether a bearer claims to be the local token, good or bad. */
export function isLocalToken(token: string): boolean {
  return token.startsWith(PREFIX)
}

/** Accepts the token that the host wrote for this machine's user; only its hash is known here. */
export function localToken(tokenSha256: string): (token: string) => Promise<Identity> {
  return async (token) => {
    if (!LOCAL_TOKEN.test(token) || !isEqualInConstantTime(await sha256Hex(token), tokenSha256))
      throw notAccepted('the token is not accepted')
    return { ...LOCAL_IDENTITY, via: 'bearer' }
  }
}
