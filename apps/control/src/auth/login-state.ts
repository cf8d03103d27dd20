import { fromBase64Url, toBase64Url } from '@sandwire/bytes'
import type { CookieClaim } from './browser-cookie.ts'
import { readCookie } from './cookies.ts'

/** Lax, since the browser comes back from another site; `__Host-` as for the sign-in itself. */
const COOKIE = '__Host-sandwire-login'
const ATTRIBUTES = 'Path=/; HttpOnly; Secure; SameSite=Lax'

/** How long somebody may take on the issuer's pages. */
export const LOGIN_LIFE_MS = 10 * 60 * 1000

const IV_BYTES = 12
/** Longest cookie that is looked at; what we write is well below. */
const MAX_COOKIE_CHARS = 2_048

/** What a browser holds between leaving for the issuer and coming back. */
export interface LoginState {
  /** Said by the issuer on the way back; the browser that left with it is the only one that may come back with it. */
  readonly state: string
  /** In the ID token, which so belongs to this sign-in. */
  readonly nonce: string
  /** Proves to the issuer that the code was asked for here. */
  readonly verifier: string
  /** Id of the issuer that was left for. */
  readonly issuer: string
  /** Who that was then. */
  readonly voucher: string
  /** Where the code is sent, as the issuer was told. */
  readonly redirectUri: string
  /** Path to go to afterwards. */
  readonly to: string
  /** The sign-in that the browser had when it left. */
  readonly replaces?: readonly CookieClaim[]
  readonly expiresMs: number
}

/** Hands login states to browsers such that none but ours are taken back, and nobody can read them. */
export interface LoginStates {
  /** The Set-Cookie header for a state. */
  seal(state: LoginState): Promise<string>
  /** The state in a request's cookie; undefined when there is none, or none of ours, or it has expired. */
  open(headers: Headers, nowMs: number): Promise<LoginState | undefined>
}

/** Tells the browser to forget it. */
export const FORGET_LOGIN = `${COOKIE}=; ${ATTRIBUTES}; Max-Age=0`

/** Seals with a key of its own, derived from a secret of the server. */
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
      // Not sealed with this key: bent, invented, or of a server that had another secret.
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
