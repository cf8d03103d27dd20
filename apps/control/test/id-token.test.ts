import { expect, test } from 'bun:test'
import { rejectionOf } from '@sandwire/testing'
import { unauthorized } from '../src/auth/identity.ts'
import { verifyIdToken } from '../src/auth/oidc-token.ts'
import { makeKey, type SigningKey, signText } from './support/fake-issuer.ts'

const NOW = 1_800_000_000
const key = await makeKey('k1')
const publicKey = await crypto.subtle.importKey(
  'jwk',
  key.publicJwk as JsonWebKey,
  { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
  false,
  ['verify'],
)

const CLAIMS = {
  iss: 'https://issuer.test',
  sub: 'ada',
  aud: 'our-client',
  nonce: 'n'.repeat(43),
  iat: NOW,
  exp: NOW + 300,
  name: 'Ada',
}

function token(claims: Record<string, unknown>, header = {}, by: SigningKey = key): Promise<string> {
  const full = { alg: 'RS256', kid: 'k1', ...header }
  return signText(JSON.stringify(full), JSON.stringify({ ...CLAIMS, ...claims }), by)
}

function check(text: string): ReturnType<typeof verifyIdToken> {
  return verifyIdToken(text, {
    config: {
      issuer: 'https://issuer.test',
      algorithms: ['RS256'],
    },
    client: {
      findKey: ({ kid }) =>
        kid === 'k1' ? Promise.resolve(publicKey) : Promise.reject(unauthorized('the key is not known')),
    },
    clientId: 'our-client',
    nonce: CLAIMS.nonce,
    nowMs: NOW * 1000,
  })
}

test('an ID token of this sign-in identifies the user', async () => {
  expect((await check(await token({}))).sub).toBe('ada')
  expect((await check(await token({ aud: ['our-client'] }))).sub).toBe('ada')
  expect((await check(await token({ aud: ['our-client', 'x'], azp: 'our-client' }))).sub).toBe('ada')
})

test.each([
  ['of another issuer', { iss: 'https://evil.test' }],
  ['with another spelling of the issuer', { iss: 'https://issuer.test/' }],
  ['without an issuer', { iss: undefined }],
  ['for another client', { aud: 'another-client' }],
  ['for our API and not our client', { aud: 'sandwire-api' }],
  ['for several audiences without azp', { aud: ['our-client', 'another-client'] }],
  ['issued to another client', { aud: ['our-client', 'another-client'], azp: 'another-client' }],
  ['without an audience', { aud: undefined }],
  ['of another sign-in', { nonce: 'm'.repeat(43) }],
  ['without a nonce', { nonce: undefined }],
  ['with part of a nonce', { nonce: 'n'.repeat(42) }],
  ['that has expired', { exp: NOW - 60 }],
  ['that never expires', { exp: undefined }],
  ['from the future', { iat: NOW + 600 }],
  ['without a subject', { sub: undefined }],
  ['whose subject is a number', { sub: 1 }],
])('an ID token %s is refused', async (_, claims) => {
  expect(await rejectionOf(check(await token(claims)))).toMatchObject({ code: 'unauthorized' })
})

test('an ID token that is not signed by the issuer is refused (threat T34)', async () => {
  const other = await makeKey('k1')
  const [head = '', body = '', signature = ''] = (await token({})).split('.')
  const unsigned = Buffer.from('{"alg":"none","kid":"k1"}').toString('base64url')
  for (const bad of [
    await token({}, {}, other),
    await token({}, { kid: 'k2' }),
    await token({}, { alg: 'RS512' }),
    `${unsigned}.${body}.`,
    `${unsigned}.${body}.${signature}`,
    `${head}.${body}.`,
    `${head}.${body}.${signature.slice(0, -4)}AAAA`,
    `${head}.${Buffer.from(JSON.stringify({ ...CLAIMS, sub: 'eve' })).toString('base64url')}.${signature}`,
    '',
    'a.b',
  ])
    expect(await rejectionOf(check(bad))).toMatchObject({ code: 'unauthorized' })
})
