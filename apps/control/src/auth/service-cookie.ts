import type { Authenticator } from './identity.ts'
import { isJwtForm } from './jwt.ts'

/** Cookie in which a service of the operator gives browsers its token. */
const COOKIE = 'session'

function tokenOf(headers: Headers): string | undefined {
  const values = (headers.get('cookie') ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${COOKIE}=`))
    .map((pair) => pair.slice(COOKIE.length + 1))
  const [value, ...more] = values
  // Two cookies of one name are of two paths or domains, and one may be planted.
  return value !== undefined && more.length === 0 && isJwtForm(value) ? value : undefined
}

/** Authenticates by a service's token in a cookie, verified as a bearer token is. */
export function createServiceCookieAuthenticator(bearer: Authenticator): Authenticator {
  return {
    async authenticate(headers) {
      const token = tokenOf(headers)
      if (token === undefined) return undefined
      const identity = await bearer.authenticate(new Headers({ authorization: `Bearer ${token}` }))
      return identity === undefined ? undefined : { ...identity, via: 'service cookie' }
    },
  }
}
