import { SandwireError } from '@sandwire/protocol'

/** A key that encrypts session tokens. */
export interface SessionKey {
  /** Key id in the tokens, so that they stay valid after the key was rotated. */
  readonly kid: string
  readonly bytes: Uint8Array<ArrayBuffer>
}

/** AES-256. */
const MIN_KEY_BYTES = 32
const MAX_KEYS = 8

function refused(why: string): SandwireError {
  return new SandwireError('bad_request', `Cannot use SESSION_TOKEN_SECRET: ${why}`)
}

function decodeKey(text: string, at: number): SessionKey {
  const [, kid, base64 = ''] = /^([A-Za-z0-9_-]{1,16}):([A-Za-z0-9+/_=-]+)$/.exec(text) ?? []
  if (kid === undefined) throw refused(`key ${at + 1} is not spelled KID:BASE64`)
  try {
    const binary = atob(base64.replaceAll('-', '+').replaceAll('_', '/'))
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0))
    if (bytes.length >= MIN_KEY_BYTES) return { kid, bytes }
  } catch {
    throw refused(`key ${at + 1} is not base64`)
  }
  throw refused(`key ${at + 1} has less than ${MIN_KEY_BYTES} bytes; make one with: openssl rand -base64 48`)
}

/** Parses `KID:BASE64,KID:BASE64`: the first key encrypts tokens, all of them decrypt. Errors contain no part of the text. */
export function decodeSessionKeys(text: string): readonly [SessionKey, ...SessionKey[]] {
  const [first, ...rest] = text.split(',').map((each, at) => decodeKey(each.trim(), at))
  if (first === undefined) throw refused('it holds no key')
  if (rest.length >= MAX_KEYS) throw refused(`it holds more than ${MAX_KEYS} keys`)
  const kids = [first, ...rest].map(({ kid }) => kid)
  if (new Set(kids).size < kids.length) throw refused('two keys have one name')
  return [first, ...rest]
}
