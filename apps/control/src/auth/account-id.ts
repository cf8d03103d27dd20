import { encodeId } from '@sandwire/internal-api'
import { isEqualInConstantTime } from '../bytes.ts'
import { LOCAL_ACCOUNT } from './local-token.ts'

/** Begins with a letter that ids of sandboxes do not have, so that neither is taken for the other. */
const ACCOUNT_ID = /^u[0-9a-hjkmnp-tv-z]{32}$/
/** Letters before the mark: the first of them all, then 130 bits of an HMAC. */
const BODY_LETTERS = 27
/** Letters of the mark at the end: 30 bits. */
const MARK_LETTERS = 6
const BODY_BYTES = 17
const MARK_BYTES = 4

/**
 * Who vouches for a subject. Each has a world of its own: no service token is ever the person of an issuer.
 * `oidc`: an issuer and its `sub`. `service`: `sub` of a service token, behind its `iss` where it has one. `api`: the API token. `guest`: a named guest.
 */
export type AccountKind = 'oidc' | 'service' | 'api' | 'guest'

/** Makes account ids, and tells ids that were made here from invented ones without asking anybody. */
export interface AccountIds {
  /** The id of whom these parts name; always the same, and nothing of them can be read from it. */
  of(kind: AccountKind, ...parts: readonly string[]): Promise<string>
  /** Whether this id was made with our key, or is the local account's. An invented one must touch no object. */
  isMinted(id: string): Promise<boolean>
}

/** Whether the text is spelled like an account id; only `isMinted` can tell whether it is one. */
export function isAccountId(text: string): boolean {
  return text === LOCAL_ACCOUNT || ACCOUNT_ID.test(text)
}

export async function openAccountIds(keyBytes: Uint8Array<ArrayBuffer>): Promise<AccountIds> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', keyBytes, algorithm, false, ['sign'])
  const lettersOf = async (use: string, text: string, bytes: number): Promise<string> => {
    const mac = await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(`${use}:${text}`))
    return encodeId(new Uint8Array(mac, 0, bytes))
  }
  const markOf = async (body: string): Promise<string> =>
    (await lettersOf('account-mark', body, MARK_BYTES)).slice(0, MARK_LETTERS)
  return {
    async of(kind, ...parts) {
      // JSON keeps the parts apart: no two lists of texts are spelled alike.
      const letters = await lettersOf('account', JSON.stringify([kind, ...parts]), BODY_BYTES)
      const body = `u${letters}`.slice(0, BODY_LETTERS)
      return body + (await markOf(body))
    },
    async isMinted(id) {
      if (id === LOCAL_ACCOUNT) return true
      if (!isAccountId(id)) return false
      return isEqualInConstantTime(await markOf(id.slice(0, BODY_LETTERS)), id.slice(BODY_LETTERS))
    },
  }
}
