import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { openAccountIds } from '../src/auth/account-id.ts'
import type { Identity } from '../src/auth/identity.ts'
import { parseJwt } from '../src/auth/jwt.ts'
import { createOidcVerifier, type OidcVerifier } from '../src/auth/oidc-token.ts'
import { FakeIssuer, makeKey } from './support/fake-issuer.ts'

let one: FakeIssuer
let two: FakeIssuer
let check: OidcVerifier
beforeAll(async () => {
  one = new FakeIssuer([await makeKey('k', 'ES256')])
  two = new FakeIssuer([await makeKey('k', 'EdDSA')])
  check = createOidcVerifier([one.config({ algorithms: ['ES256'] }), two.config({ algorithms: ['EdDSA'] })], {
    accounts: await openAccountIds(new Uint8Array(32)),
    fetchUrl: (url, init) => fetch(url, init),
    nowMs: Date.now,
  })
})
afterAll(async () => {
  await one[Symbol.asyncDispose]()
  await two[Symbol.asyncDispose]()
})

const identify = (token: string): Promise<Identity> => check(parseJwt(token))
async function loginOf(issuer: FakeIssuer, claims: Record<string, unknown>): Promise<string> {
  const { login } = await identify(await issuer.token(claims))
  expect(login).toMatch(/^[0-9a-f]{32}$/)
  return login ?? ''
}

describe('the sign-in of a token', () => {
  test('is identified by sid across renewals', async () => {
    const first = await loginOf(one, { sid: 's', jti: 'a' })
    expect(await loginOf(one, { sid: 's', jti: 'b', exp: Math.floor(Date.now() / 1000) + 900 })).toBe(first)
    expect(await loginOf(one, { sid: 't', jti: 'a' })).not.toBe(first)
  })

  test('is shared by all tokens without sid, each with an id of its own', async () => {
    const named = async (claims: Record<string, unknown>) => identify(await one.token(claims))
    const first = await named({ jti: 'a' })
    const second = await named({ jti: 'b' })
    expect(second.login).toBe(first.login ?? '')
    expect(second.token).not.toBe(first.token ?? '')
    expect((await named({ jti: 'a' })).token).toBe(first.token ?? '')
    const token = await one.token()
    expect((await identify(token)).token).toBe((await identify(token)).token ?? '')
    expect((await named({ sid: 's' })).token).toBeUndefined()
  })

  test('differs by issuer, subject and kind of id', async () => {
    const logins = [
      await loginOf(one, { sid: 's' }),
      await loginOf(one, { jti: 's' }),
      await loginOf(one, { sid: 's', sub: 'eve' }),
      await loginOf(two, { sid: 's' }),
    ]
    expect(new Set(logins).size).toBe(logins.length)
  })
})

test('a token expires at the moment from which it is refused', async () => {
  const exp = Math.floor(Date.now() / 1000) + 60
  expect(await identify(await one.token({ exp }))).toMatchObject({ expiresMs: exp * 1000 + 30_000 })
})
