import { expect, test } from 'bun:test'
import { selectIssuer, decodeAuth } from './issuer-info.ts'

const ISSUER = {
  id: 'corp',
  name: 'Corp',
  issuer: 'https://login.example',
  clientId: 'cli',
  requestScopes: ['openid'],
  requestParameters: {},
  bearer: 'access_token',
}

test('decodeAuth ignores endpoints (threat T2) and unknown fields', () => {
  const endpoints = { token: 'https://other.example/token' }
  const issuers = [{ ...ISSUER, endpoints, color: 'red' }]
  const [issuer] = decodeAuth({ mode: 'open', local: false, issuers })
  expect(issuer).toEqual(ISSUER as never)
})

test.each([
  ['an issuer over plain http (threat T2)', { issuer: 'http://login.example' }],
  ['a user in an address', { issuer: 'https://user@login.example' }],
  ['a parameter that is ours to set', { requestParameters: { client_id: 'other' } }],
  ['a scope of two words', { requestScopes: ['openid admin'] }],
  ['a token kind that is not known', { bearer: 'password' }],
  ['an id that could be an option', { id: '--url' + ' x' }],
  ['a name without end', { name: 'x'.repeat(10_000) }],
])('decodeAuth refuses %s', (_, change) => {
  expect(() => decodeAuth({ issuers: [{ ...ISSUER, ...change }] })).toThrow('Cannot understand the response')
})

test.each([[undefined], [null], [[]], ['x'], [{}], [{ issuers: {} }], [{ issuers: Array(17).fill(ISSUER) }]])(
  'decodeAuth refuses %j',
  (answer) => expect(() => decodeAuth(answer)).toThrow('Cannot understand'),
)

test('selectIssuer returns the only issuer with a client, or the one with the given id', () => {
  const [corp] = decodeAuth({ issuers: [ISSUER] })
  const [machine] = decodeAuth({ issuers: [{ ...ISSUER, id: 'machine', clientId: null }] })
  const [home] = decodeAuth({ issuers: [{ ...ISSUER, id: 'home' }] })
  if (corp === undefined || machine === undefined || home === undefined) throw new Error('Not decoded')
  expect(selectIssuer([machine, corp], undefined).id).toBe('corp')
  expect(selectIssuer([corp, home], 'home').id).toBe('home')
  expect(() => selectIssuer([corp, home], undefined)).toThrow('several issuers: corp, home')
  expect(() => selectIssuer([corp], 'machine')).toThrow('No such issuer; the server has: corp')
  expect(() => selectIssuer([machine], undefined)).toThrow('no issuer')
  expect(() => selectIssuer([], undefined)).toThrow('no issuer')
})
