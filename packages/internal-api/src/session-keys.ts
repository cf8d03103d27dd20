import { SandwireError } from '@sandwire/protocol'

/** A secret that session tokens are made with. */
export interface SessionKey {
  /** Names it in the tokens, so that they can be read after another one has taken over. */
  readonly kid: string
  readonly bytes: Uint8Array<ArrayBuffer>
}

/** As strong as the cipher that is keyed with it. */
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

/** Reads `KID:BASE64,KID:BASE64`: the first key makes tokens, all of them read them. Throws without a character of it. */
export function decodeSessionKeys(text: string): readonly [SessionKey, ...SessionKey[]] {
  const [first, ...rest] = text.split(',').map((each, at) => decodeKey(each.trim(), at))
  if (first === undefined) throw refused('it holds no key')
  if (rest.length >= MAX_KEYS) throw refused(`it holds more than ${MAX_KEYS} keys`)
  const kids = [first, ...rest].map(({ kid }) => kid)
  if (new Set(kids).size < kids.length) throw refused('two keys have one name')
  return [first, ...rest]
}
