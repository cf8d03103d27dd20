import { expect, test } from 'bun:test'
import { rejectionOf } from '@sandwire/testing'
import {
  type CookieClaim,
  createCookieAuthenticator,
  mintCookie,
  readClaim,
  type SignIn,
} from '../src/auth/browser-sign-in.ts'

const ACCOUNT = `u${'a'.repeat(32)}`
const SIGN_IN: SignIn = {
  login: 'l1',
  name: 'Ann',
  scopes: ['connect'],
  issuer: 'test',
  issuerBinding: 'v',
  createdMs: 0,
  expiresMs: 100,
}

function sending(cookie: string): Headers {
  return new Headers({ cookie })
}

/** A cookie as a browser sends it, and what is stored of it. */
async function mint(account = ACCOUNT): Promise<{ sent: string; hash: string; value: string }> {
  const { header, hash } = await mintCookie(account, 1_000)
  const sent = header.split(';')[0] ?? ''
  return { sent, hash, value: sent.slice('__Host-sandwire='.length) }
}

function authenticator(
  changes: { signIn?: SignIn | null; isMinted?: boolean; trusted?: string | null } = {},
) {
  const requested: CookieClaim[] = []
  const made = createCookieAuthenticator({
    accounts: { isMinted: async () => changes.isMinted ?? true },
    find: async (claim) => {
      requested.push(claim)
      return changes.signIn === undefined ? SIGN_IN : changes.signIn
    },
    isTrusted: ({ issuer }) => issuer === (changes.trusted === undefined ? 'test' : changes.trusted),
  })
  return { made, requested }
}

test('a cookie names its account and is stored as a hash only', async () => {
  const { sent, hash, value } = await mint()
  expect(value).toMatch(/^sws_ua{32}\.[\w-]{43}$/)
  expect(hash).toMatch(/^[0-9a-f]{64}$/)
  expect(await readClaim(sending(`x=1; ${sent}; y=2`))).toEqual({ account: ACCOUNT, hash })
  expect((await mint()).hash).not.toBe(hash)
})

test('a malformed cookie is distinguished from a missing one', async () => {
  const { sent, value } = await mint()
  expect(await readClaim(new Headers())).toBeUndefined()
  expect(await readClaim(sending(`sandwire=${value}`))).toBeUndefined()
  expect(await readClaim(sending(`x__Host-sandwire=${value}`))).toBeUndefined()
  for (const bad of [
    `${sent}; ${sent}`,
    `${sent}x`,
    sent.slice(0, -1),
    sent.replace('sws_', 'swx_'),
    sent.replace(ACCOUNT, ACCOUNT.toUpperCase()),
    sent.replace(ACCOUNT, ''),
    sent.replace(ACCOUNT, '../x'),
    sent.replace('.', ''),
    `__Host-sandwire="${value}"`,
    '__Host-sandwire=',
  ])
    expect([bad, await readClaim(sending(bad))]).toEqual([bad, null])
})

test('the cookie of a signed-in browser authenticates it', async () => {
  const { sent, hash } = await mint()
  const { made, requested } = authenticator()
  expect(await made.authenticate(sending(sent))).toEqual({
    account: ACCOUNT,
    name: 'Ann',
    scopes: ['connect'],
    via: 'cookie',
    login: 'l1',
    expiresMs: 100,
  })
  expect(requested).toEqual([{ account: ACCOUNT, hash }])
  expect(await made.authenticate(new Headers())).toBeUndefined()
})

test('a cookie of a forged account id is refused without a lookup', async () => {
  const { made, requested } = authenticator({ isMinted: false })
  expect(await rejectionOf(made.authenticate(sending((await mint()).sent)))).toMatchObject({
    code: 'unauthorized',
  })
  expect(requested).toEqual([])
})

test('a cookie of an ended sign-in or a removed issuer is refused', async () => {
  const { sent } = await mint()
  for (const changes of [
    { signIn: null },
    { trusted: 'another' },
    { trusted: null },
    { signIn: { ...SIGN_IN, issuer: null } },
  ])
    expect(await rejectionOf(authenticator(changes).made.authenticate(sending(sent)))).toMatchObject({
      code: 'unauthorized',
    })
})
