import { encodeId } from '@sandwire/internal-api'
import { isEqualInConstantTime } from '../bytes.ts'
import { LOCAL_ACCOUNT } from './local-identity.ts'

/** Begins with a letter that no sandbox id begins with. */
const ACCOUNT_ID = /^u[0-9a-hjkmnp-tv-z]{32}$/
/** Letters before the checksum: `u`, then 130 bits of an HMAC. */
const BODY_LETTERS = 27
/** Letters of the checksum: 30 bits of an HMAC. */
const CHECKSUM_LETTERS = 6
const BODY_BYTES = 17
const CHECKSUM_BYTES = 4

/**
 * Namespace of a subject, so that a service token never has the account of an issuer's user.
 * `oidc`: issuer and `sub`. `service`: `iss`, if any, and `sub` of a service token. `api`: the API token. `guest`: a guest.
 */
export type AccountKind = 'oidc' | 'service' | 'api' | 'guest'

/** Derives account ids and recognizes invented ones without a lookup. */
export interface AccountIds {
  /** The account id of these parts; deterministic, and reveals nothing about them. */
  of(kind: AccountKind, ...parts: readonly string[]): Promise<string>
  /** True if the id was derived with our key, or is the local account. Objects must not be created for other ids. */
  isMinted(id: string): Promise<boolean>
}

/** True if the text has the format of an account id; `isMinted` checks whether it is one. */
export function isAccountId(text: string): boolean {
  return text === LOCAL_ACCOUNT || ACCOUNT_ID.test(text)
}

export async function openAccountIds(keyBytes: Uint8Array<ArrayBuffer>): Promise<AccountIds> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', keyBytes, algorithm, false, ['sign'])
  const lettersOf = async (purpose: string, text: string, bytes: number): Promise<string> => {
    const mac = await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(`${purpose}:${text}`))
    return encodeId(new Uint8Array(mac, 0, bytes))
  }
  const checksumOf = async (body: string): Promise<string> =>
    (await lettersOf('account-mark', body, CHECKSUM_BYTES)).slice(0, CHECKSUM_LETTERS)
  return {
    async of(kind, ...parts) {
      // JSON separates the parts unambiguously.
      const letters = await lettersOf('account', JSON.stringify([kind, ...parts]), BODY_BYTES)
      const body = `u${letters}`.slice(0, BODY_LETTERS)
      return body + (await checksumOf(body))
    },
    async isMinted(id) {
      if (id === LOCAL_ACCOUNT) return true
      if (!isAccountId(id)) return false
      return isEqualInConstantTime(await checksumOf(id.slice(0, BODY_LETTERS)), id.slice(BODY_LETTERS))
    },
  }
}
