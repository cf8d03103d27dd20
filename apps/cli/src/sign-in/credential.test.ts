import { describe, expect, test } from 'bun:test'
import {
  decodeCredential,
  findTokenProblem,
  hasSameAudience,
  isSameClient,
  jwtExpiryMs,
  isSameSignIn,
  createCredential,
  renewCredential,
} from './credential.ts'

const jwt = (payload: object): string =>
  `e30.${Buffer.from(JSON.stringify(payload)).toString('base64url')}.sig`

const INFO = {
  id: 'corp',
  name: 'Corp',
  issuer: 'https://login.example',
  clientId: 'cli',
  requestScopes: ['openid'],
  requestParameters: { resource: 'https://h/', audience: 'x' },
  bearer: 'access_token',
} as const
const ENDPOINTS = { issuer: INFO.issuer, clientId: 'cli', token: 'https://login.example/token' }
const TOKENS = { accessToken: 'a1', idToken: jwt({ exp: 500 }), refreshToken: 'r1', expiresInSeconds: 60 }

function make(bearer: 'access_token' | 'id_token', tokens = TOKENS) {
  const made = createCredential(
    'https://h',
    { info: { ...INFO, bearer }, endpoints: ENDPOINTS },
    tokens,
    1_000,
  )
  if (made === undefined) throw new Error('There is no credential')
  return made
}

describe('createCredential', () => {
  test('stores the access token, its expiry by the local clock, and how to renew it', () => {
    const made = make('access_token')
    expect(made).toEqual({
      version: 1,
      origin: 'https://h',
      bearer: 'a1',
      expiresMs: 61_000,
      renewal: {
        issuer: 'https://login.example',
        clientId: 'cli',
        tokenEndpoint: 'https://login.example/token',
        resource: 'https://h/',
        bearerKind: 'access_token',
        refreshToken: 'r1',
      },
    })
    expect(decodeCredential(JSON.stringify(made))).toEqual(made)
  })

  test('stores the ID token with its own expiry if the server needs it', () => {
    expect(make('id_token')).toMatchObject({ bearer: TOKENS.idToken, expiresMs: 500_000 })
    expect(
      createCredential(
        'https://h',
        { info: { ...INFO, bearer: 'id_token' }, endpoints: ENDPOINTS },
        { ...TOKENS, idToken: undefined },
        0,
      ),
    ).toBeUndefined()
  })

  test('uses the exp claim if the issuer gives no lifetime', () => {
    const tokens = { ...TOKENS, expiresInSeconds: undefined }
    const from = (accessToken: string) =>
      createCredential('https://h', { info: INFO, endpoints: ENDPOINTS }, { ...tokens, accessToken }, 0)
        ?.expiresMs
    expect(from(jwt({ exp: 7 }))).toBe(7_000)
    expect(from('opaque')).toBeUndefined()
  })
})

describe('renewCredential', () => {
  test('uses the new refresh token, or keeps the old one without rotation', () => {
    const { origin, renewal } = make('access_token')
    if (renewal === undefined) throw new Error('There is no renewal')
    const tokens = { ...TOKENS, accessToken: 'a2', refreshToken: 'r2' }
    expect(renewCredential({ origin, renewal }, tokens, 0)).toMatchObject({
      bearer: 'a2',
      renewal: { refreshToken: 'r2' },
    })
    expect(renewCredential({ origin, renewal }, { ...tokens, refreshToken: undefined }, 0)).toMatchObject({
      renewal: { refreshToken: 'r1' },
    })
  })
})

test.each(['', 'x', '{}', 'null', '{"version":2}', '[]'])('decodeCredential does not understand %j', (text) =>
  expect(decodeCredential(text)).toBeUndefined(),
)

test.each([
  '',
  'a',
  'a.b.c',
  `a.${Buffer.from('null').toString('base64url')}.c`,
  jwt({ exp: 'x' }),
  jwt({ exp: -1 }),
])('jwtExpiryMs of %j is undefined', (text) => expect(jwtExpiryMs(text)).toBeUndefined())

describe('isSameSignIn', () => {
  const of = (accessToken: string) => make('access_token', { ...TOKENS, accessToken })

  test('compares the sid claim and the token', () => {
    expect(isSameSignIn(of(jwt({ sid: 's', jti: '1' })), of(jwt({ sid: 's', jti: '2' })))).toBe(true)
    expect(isSameSignIn(of('a1'), of('a1'))).toBe(true)
    expect(isSameSignIn(of('a1'), of('a2'))).toBe(false)
    expect(isSameSignIn(of(jwt({ sid: 's' })), of(jwt({ sid: 't' })))).toBe(false)
    expect(isSameSignIn(of(jwt({ jti: '1' })), of(jwt({ jti: '2' })))).toBe(false)
    const guest = { version: 1, origin: 'https://h', bearer: jwt({ sid: 's', jti: '1' }) } as const
    expect(isSameSignIn(guest, of(jwt({ sid: 's', jti: '2' })))).toBe(false)
  })
})

test('findTokenProblem names a token that the server cannot read, or that is of another issuer (threat T2)', () => {
  expect(findTokenProblem(jwt({ iss: 'https://login.example' }), 'https://login.example')).toBeUndefined()
  expect(findTokenProblem(jwt({ iss: 'https://login.example' }), 'https://login.example/')).toBe(
    'otherIssuer',
  )
  expect(findTokenProblem(jwt({}), 'https://login.example')).toBe('otherIssuer')
  expect(findTokenProblem('opaque', 'https://login.example')).toBe('opaque')
})

describe('hasSameAudience (threat T2)', () => {
  const of = (claims: object) => make('access_token', { ...TOKENS, accessToken: jwt(claims) })
  const token = of({ iss: 'i', aud: ['api', 'other'] })

  test.each([
    [{ iss: 'i', aud: 'api' }, true],
    [{ iss: 'i', aud: ['x', 'other'] }, true],
    [{ iss: 'i' }, true],
    [{ iss: 'i', aud: 'x' }, false],
    [{ iss: 'j', aud: 'api' }, false],
    [{ aud: 'api' }, false],
  ])('compares issuer and audiences with %j', (claims, expected) => {
    expect(hasSameAudience(token, of(claims))).toBe(expected)
    expect(hasSameAudience(of(claims), token)).toBe(expected)
  })
})

test('isSameClient compares the client, and the issuer or the token endpoint (threat T2)', () => {
  const stored = make('access_token')
  const own = { issuer: 'https://evil.example', clientId: 'cli', token: 'https://evil.example/token' }
  expect(isSameClient(stored, own)).toBe(false)
  expect(isSameClient(stored, { ...own, issuer: INFO.issuer })).toBe(true)
  expect(isSameClient(stored, { ...own, token: 'https://LOGIN.example:443/token' })).toBe(true)
  expect(isSameClient(stored, { ...own, issuer: INFO.issuer, clientId: 'other' })).toBe(false)
  expect(isSameClient({ version: 1, origin: 'https://h', bearer: 'guest' }, own)).toBe(false)
})
