import { mintSecret, sha256Hex } from '../bytes.ts'
import { type Authenticator, notAccepted } from './authenticator.ts'
import { LOCAL_IDENTITY } from './local-token.ts'

/** The prefix makes browsers refuse it from other hosts, from subdomains and without `Secure`. */
const COOKIE = '__Host-sandwire'
const VALUE = /^sws_[A-Za-z0-9_-]{43}$/

/** Enough of a hash to name a sign-in by. */
const LOGIN_CHARS = 32

/** Value of our cookie in a request; undefined without one, empty when it is not one of ours. */
function readCookie(headers: Headers): string | undefined {
  const values = (headers.get('cookie') ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${COOKIE}=`))
    .map((pair) => pair.slice(COOKIE.length + 1))
  if (values.length === 0) return undefined
  const [value] = values
  return values.length === 1 && value !== undefined && VALUE.test(value) ? value : ''
}

/** Hash of the request's cookie, as it is stored; undefined without a well-formed one. */
export async function hashOfCookie(headers: Headers): Promise<string | undefined> {
  const value = readCookie(headers)
  return value === undefined || value === '' ? undefined : sha256Hex(value)
}

/** A new cookie: what the browser is told, and the hash to remember it by. */
export async function mintCookie(lifeMs: number): Promise<{ header: string; hash: string }> {
  const value = `sws_${mintSecret()}`
  const header = `${COOKIE}=${value}; Path=/; Max-Age=${Math.floor(lifeMs / 1000)}; HttpOnly; Secure; SameSite=Strict`
  return { header, hash: await sha256Hex(value) }
}

/** Tells the browser to forget its cookie. */
export const FORGET_COOKIE = `${COOKIE}=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Strict`

/** Accepts browsers that signed in. */
export function browserCookie(isSignedIn: (hash: string) => Promise<boolean>): Authenticator {
  return {
    async authenticate(headers) {
      if (readCookie(headers) === undefined) return undefined
      const hash = await hashOfCookie(headers)
      if (hash === undefined || !(await isSignedIn(hash))) throw notAccepted('the sign-in has expired')
      return { ...LOCAL_IDENTITY, via: 'cookie', login: hash.slice(0, LOGIN_CHARS) }
    },
  }
}
