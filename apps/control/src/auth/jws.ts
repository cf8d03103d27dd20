import { fromBase64Url } from '@sandwire/bytes'
import { compactVerify, type CompactVerifyGetKey, type CryptoKey, errors } from 'jose'
import { findDuplicateKey } from '../http/duplicate-key.ts'
import { notAccepted } from './authenticator.ts'

/** Longest token that is looked at: far more than issuers send, far less than hurts. */
export const MAX_TOKEN_BYTES = 8 * 1024

/** Headers that bring a key along, or change what a signature means. No token of an issuer we trust needs them. */
const REFUSED_HEADERS = ['crit', 'b64', 'zip', 'jku', 'jwk', 'x5u', 'x5c']

/** The members of a JSON object. A map, so that nothing is ever read from a prototype. */
export type Members = ReadonlyMap<string, unknown>

/** A token taken apart; nothing of it is believed yet. */
export interface Jws {
  readonly token: string
  readonly header: Members
  readonly alg: string
  readonly payload: Uint8Array
}

/** The members of a JSON object in UTF-8; undefined for anything else and for one that has a key twice. */
export function readMembers(bytes: Uint8Array): Members | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return undefined
    return findDuplicateKey(text) === undefined ? new Map(Object.entries(parsed)) : undefined
  } catch {
    // Not JSON: told by the undefined.
    return undefined
  }
}

/** Takes a token apart that is three parts in base64url, each in its one spelling. */
export function readJws(token: string): Jws {
  if (token.length > MAX_TOKEN_BYTES) throw notAccepted('the token is too long')
  const parts = token.split('.').map(fromBase64Url)
  const [head, payload, signature] = parts
  if (parts.length !== 3 || head === undefined || payload === undefined || signature === undefined)
    throw notAccepted('the token is malformed')
  const header = readMembers(head)
  const alg = header?.get('alg')
  if (header === undefined || typeof alg !== 'string') throw notAccepted('the token is malformed')
  if (REFUSED_HEADERS.some((name) => header.has(name)))
    throw notAccepted('the token has a header that is not allowed')
  return { token, header, alg, payload }
}

/** Checks the signature with an algorithm of the list and a key of ours; throws `unauthorized` when it is not good. */
export async function verifyJws(
  { token, alg }: Jws,
  algorithms: readonly string[],
  key: CryptoKey | CompactVerifyGetKey,
): Promise<void> {
  if (!algorithms.includes(alg)) throw notAccepted('the token is signed in a way that is not allowed')
  try {
    const options = { algorithms: [...algorithms] }
    await (typeof key === 'function'
      ? compactVerify(token, key, options)
      : compactVerify(token, key, options))
  } catch (caught) {
    // A key that is too short or of another kind is a TypeError; what the key's finder throws is its own.
    if (caught instanceof errors.JOSEError || caught instanceof TypeError)
      throw notAccepted('the signature of the token is not good')
    throw caught
  }
}
