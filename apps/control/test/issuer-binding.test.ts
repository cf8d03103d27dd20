import { expect, test } from 'bun:test'
import { issuerBindingOf, isTrustedSignIn } from '../src/auth/browser-sign-in.ts'
import { CodeFlow } from '../src/auth/code-flow.ts'
import { rejectionOf } from '@sandwire/testing'

const OURS = { issuer: 'https://id.example', clientId: 'sandwire' }
const SIGN_IN = { login: 'l', issuer: 'oidc', issuerBinding: issuerBindingOf(OURS) }

test('(threat T2) a sign-in ends when its issuer or client changes in the settings', () => {
  const isTrusted = (...issuers: { issuer: string; clientId?: string }[]): boolean =>
    isTrustedSignIn(SIGN_IN, { mode: 'local', issuers, localTokenSha256: 'hash' })
  expect(isTrusted(OURS)).toBe(true)
  expect(isTrusted({ ...OURS, issuer: 'https://other.example' }, OURS)).toBe(true)
  expect(isTrusted()).toBe(false)
  expect(isTrusted({ ...OURS, issuer: 'https://other.example' })).toBe(false)
  expect(isTrusted({ ...OURS, clientId: 'another' })).toBe(false)
  expect(isTrusted({ issuer: OURS.issuer })).toBe(false)
  // A sign-in without a stored binding.
  expect(
    isTrustedSignIn(
      { ...SIGN_IN, issuerBinding: null },
      { mode: 'local', issuers: [OURS], localTokenSha256: 'hash' },
    ),
  ).toBe(false)
})

test('a sign-in by a link of the host needs the local identity', () => {
  const link = { login: 'l', issuer: null, issuerBinding: null }
  expect(isTrustedSignIn(link, { mode: 'local', issuers: [], localTokenSha256: 'hash' })).toBe(true)
  expect(isTrustedSignIn(link, { mode: 'local', issuers: [OURS] })).toBe(false)
})

test('(threat T2) a sign-in started at one issuer cannot finish at its replacement', async () => {
  const requested: string[] = []
  const flow = new CodeFlow(
    {
      id: 'oidc',
      name: 'SSO',
      ...OURS,
      audiences: ['a'],
      algorithms: ['RS256'],
      defaultScopes: [],
      requestScopes: [],
      bearer: 'access_token',
      endpoints: {},
    },
    {
      accounts: { of: async () => 'u' },
      fetchUrl: async (url) => {
        requested.push(String(url))
        throw new Error('away')
      },
      nowMs: () => 0,
    },
  )
  const left = {
    state: 's',
    nonce: 'n',
    verifier: 'v',
    issuer: 'oidc',
    redirectUri: 'https://s.example/x',
    to: '/',
    expiresMs: 1,
  }
  const back = new URLSearchParams({ state: 's', code: 'c', iss: OURS.issuer })
  const other = issuerBindingOf({ ...OURS, clientId: 'another' })
  expect(await rejectionOf(flow.finish(back, { ...left, issuerBinding: other }))).toMatchObject({
    problem: 'stale',
  })
  expect(requested).toEqual([])
  expect(
    await rejectionOf(flow.finish(back, { ...left, issuerBinding: issuerBindingOf(OURS) })),
  ).toMatchObject({
    problem: 'unavailable',
  })
})
