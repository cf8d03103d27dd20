import { isEqualInConstantTime, sha256Hex } from '../bytes.ts'
import { type Authenticator, type Identity, notAccepted, SCOPES } from './authenticator.ts'

/** The one person of a server that runs on one machine. */
export const LOCAL_ACCOUNT = 'local'

/** Its person owns the machine, and so may do everything. */
export const LOCAL_IDENTITY: Omit<Identity, 'via'> = { account: LOCAL_ACCOUNT, name: 'owner', scopes: SCOPES }

/** The scheme in any case, as RFC 9110, section 11.1, has it. */
const LOCAL_TOKEN = /^bearer +(swl_[A-Za-z0-9_-]{43})$/i

/** Accepts the token that the host wrote for this machine's user; only its hash is known here. */
export function localToken(tokenSha256: string): Authenticator {
  return {
    async authenticate(headers) {
      const header = headers.get('authorization')
      if (header === null) return undefined
      const token = LOCAL_TOKEN.exec(header)?.[1]
      if (token === undefined || !isEqualInConstantTime(await sha256Hex(token), tokenSha256))
        throw notAccepted('the token is not accepted')
      return { ...LOCAL_IDENTITY, via: 'bearer' }
    },
  }
}
