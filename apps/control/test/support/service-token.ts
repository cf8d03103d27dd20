import { createHmac } from 'node:crypto'

/** Binding `JWT_SECRET` of controls that accept service tokens. */
export const JWT_SECRET = 'a-secret-of-tests-that-is-long-enough-for-hs256'

/** A service token with exactly these scopes. */
export function serviceToken(subject: string, scopes: readonly ('connect' | 'exec' | 'admin')[]): string {
  return signServiceToken({ sub: subject, scope: scopes.map((each) => `sandbox:${each}`).join(' ') })
}

/** A service token with these claims that is valid for an hour. */
export function signServiceToken(more: Readonly<Record<string, string>>): string {
  const nowSeconds = Math.floor(Date.now() / 1000)
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = { ...more, iat: nowSeconds, exp: nowSeconds + 3600 }
  const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`
  return `${signed}.${createHmac('sha256', JWT_SECRET).update(signed).digest('base64url')}`
}
