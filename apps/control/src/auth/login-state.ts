import { fromBase64Url, toBase64Url } from '@sandwire/bytes'
import { type CookieClaim, readCookie } from './browser-sign-in.ts'

/** `Lax`, because the issuer redirects back from another site. */
const COOKIE = '__Host-sandwire-login'
const ATTRIBUTES = 'Path=/; HttpOnly; Secure; SameSite=Lax'

/** How long a user may take at the issuer. */
export const LOGIN_LIFE_MS = 10 * 60 * 1000

const IV_BYTES = 12
/** Longest cookie that is decrypted; ours are far shorter. */
const MAX_COOKIE_CHARS = 2_048

/** The state of a sign-in, stored in the browser while the user is at the issuer. */
export interface LoginState {
  /** Returned by the issuer; must match, so that only the browser that started the sign-in can finish it. */
  readonly state: string
  /** Expected in the ID token. */
  readonly nonce: string
  /** PKCE code verifier. */
  readonly verifier: string
  /** Id of the issuer. */
  readonly issuer: string
  /** The issuer and client at the time, by `issuerBindingOf`. */
  readonly issuerBinding: string
  /** The redirect URI sent to the issuer. */
  readonly redirectUri: string
  /** Path to open after the sign-in. */
  readonly to: string
  /** The browser's sign-in when this one started; ended when this one finishes. */
  readonly replaces?: readonly CookieClaim[]
  readonly expiresMs: number
}

/** Encrypts login states into cookies and back. */
export interface LoginStates {
  /** The Set-Cookie header for a state. */
  seal(state: LoginState): Promise<string>
  /** The state in a request's cookie; undefined if absent, invalid or expired. */
  open(headers: Headers, nowMs: number): Promise<LoginState | undefined>
}

/** Deletes the cookie. */
export const CLEAR_LOGIN_COOKIE = `${COOKIE}=; ${ATTRIBUTES}; Max-Age=0`

/** Uses a key derived from a secret of the server. */
export async function openLoginStates(secret: Uint8Array<ArrayBuffer>): Promise<LoginStates> {
  const utf8 = new TextEncoder()
  const base = await crypto.subtle.importKey('raw', secret, 'HKDF', false, ['deriveKey'])
  const derivation = {
    name: 'HKDF',
    hash: 'SHA-256',
    salt: new Uint8Array(),
    info: utf8.encode('sandwire login state 1'),
  }
  const algorithm = { name: 'AES-GCM', length: 256 }
  const key = await crypto.subtle.deriveKey(derivation, base, algorithm, false, ['encrypt', 'decrypt'])

  const decrypt = async (value: string): Promise<LoginState | undefined> => {
    const bytes = fromBase64Url(value)
    if (bytes === undefined || bytes.length <= IV_BYTES) return undefined
    const iv = bytes.slice(0, IV_BYTES)
    try {
      const plain = await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, key, bytes.slice(IV_BYTES))
      return JSON.parse(new TextDecoder().decode(plain)) as LoginState
    } catch {
      // Not encrypted with this key.
      return undefined
    }
  }

  return {
    async seal(state) {
      const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES))
      const plain = utf8.encode(JSON.stringify(state))
      const sealed = new Uint8Array(await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, key, plain))
      const value = toBase64Url(Uint8Array.from([...iv, ...sealed]))
      return `${COOKIE}=${value}; ${ATTRIBUTES}; Max-Age=${LOGIN_LIFE_MS / 1000}`
    },
    async open(headers, nowMs) {
      const value = readCookie(headers, COOKIE)
      if (value === undefined || value.length > MAX_COOKIE_CHARS) return undefined
      const state = await decrypt(value)
      return state !== undefined && state.expiresMs > nowMs ? state : undefined
    },
  }
}

/** Longest path to open after a sign-in. */
const MAX_PATH_CHARS = 512
/** Characters of a path and query. Excludes `#`, since a fragment can hold a secret, and `\`, which browsers read as `/`. */
const PATH_AND_QUERY = /^\/[\w.~!$&'()*+,;=:@%/?-]*$/
/** Escapes that an intermediate decoder could turn into `//host`. */
const HIDDEN_SLASH = /%(2f|5c|25|[01]|7f)/i
/** Not pages, or the sign-in itself, which would loop. */
const NOT_A_PAGE = /^\/(signin|api)(\/|$)/

/** The path to open after a sign-in: this one if it is a page of this server, otherwise `/`. */
export function returnPathOf(text: string | null | undefined): string {
  if (text === null || text === undefined) return '/'
  if (text.length > MAX_PATH_CHARS || !PATH_AND_QUERY.test(text)) return '/'
  const { origin, pathname, search } = new URL(text, 'http://ours.invalid')
  // The parser removes `.` and `..`, which can bring two slashes together.
  const isOurs = origin === 'http://ours.invalid' && !pathname.includes('//') && !HIDDEN_SLASH.test(pathname)
  return isOurs && !NOT_A_PAGE.test(pathname) ? pathname + search : '/'
}
