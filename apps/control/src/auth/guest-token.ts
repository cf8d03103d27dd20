import { mintSecret, sha256Hex } from '../bytes.ts'
import type { AccountIds } from './account-id.ts'
import { type Authenticator, notAccepted } from './authenticator.ts'
import type { SignIn } from './browser-cookie.ts'
import { guestName } from './guest-name.ts'

/** The scheme in any case, as RFC 9110, section 11.1, has it. */
const GUEST_TOKEN = /^bearer +(swg_([a-z0-9]{1,64})\.[A-Za-z0-9_-]{43})$/i
const PREFIX = /^bearer +swg_/i

/** A token for a guest who is no browser, and the hash to remember it by. */
export async function mintGuestToken(account: string): Promise<{ token: string; hash: string }> {
  const token = `swg_${account}.${mintSecret()}`
  return { token, hash: await sha256Hex(token) }
}

export interface GuestDependencies {
  readonly accounts: Pick<AccountIds, 'isMinted'>
  /** Asks the account's object. */
  readonly find: (account: string, hash: string) => Promise<SignIn | null>
}

/** Accepts guests of this machine: they got their token for a link. */
export function guestToken({ accounts, find }: GuestDependencies): Authenticator {
  return {
    async authenticate(headers) {
      const header = headers.get('authorization')
      if (header === null || !PREFIX.test(header)) return undefined
      const [, token, account] = GUEST_TOKEN.exec(header) ?? []
      const isOurs = token !== undefined && account !== undefined && (await accounts.isMinted(account))
      const signIn = isOurs ? await find(account, await sha256Hex(token)) : null
      if (account === undefined || signIn === null) throw notAccepted('the token is not accepted')
      const { name, scopes, login, expiresMs } = signIn
      return { account, name: guestName(name), scopes, via: 'bearer', login, expiresMs }
    },
  }
}
