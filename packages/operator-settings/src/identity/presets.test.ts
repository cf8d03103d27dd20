import { describe, expect, test } from 'bun:test'
import { isLoopbackUrl, isSecureUrl } from './issuer-config.ts'
import { ISSUER_PRESETS, type IssuerInputs, issuerFromPreset } from './presets.ts'

const ENOUGH = {
  'oauth-do': { audience: 'sandwire' },
  google: { clientId: 'c.apps.example' },
  github: { issuer: 'https://dex.example', clientId: 'sandwire' },
  keycloak: { domain: 'id.example', realm: 'staff', audience: 'sandwire' },
  auth0: { domain: 'acme.eu.auth0.com', audience: 'https://sandwire.example' },
  entra: { tenant: '8f9c1c7e-0000-4000-8000-000000000000', audience: 'b6f1' },
  okta: { domain: 'acme.okta.com' },
  oidc: { issuer: 'https://id.example/', audience: 'sandwire' },
} as const satisfies Record<keyof typeof ISSUER_PRESETS, IssuerInputs>

describe('an issuer preset', () => {
  test.each([
    ['oauth-do', 'https://id.org.ai', ['sandwire'], 'access_token'],
    ['google', 'https://accounts.google.com', ['c.apps.example'], 'id_token'],
    ['github', 'https://dex.example', ['sandwire'], 'id_token'],
    ['keycloak', 'https://id.example/realms/staff', ['sandwire'], 'access_token'],
    ['auth0', 'https://acme.eu.auth0.com/', ['https://sandwire.example'], 'access_token'],
    [
      'entra',
      'https://login.microsoftonline.com/8f9c1c7e-0000-4000-8000-000000000000/v2.0',
      ['b6f1'],
      'access_token',
    ],
    ['okta', 'https://acme.okta.com/oauth2/default', ['api://default'], 'access_token'],
    ['oidc', 'https://id.example/', ['sandwire'], 'access_token'],
  ] as const)('turns little into settings: %s', (preset, issuer, audiences, bearer) => {
    expect(issuerFromPreset(preset, ENOUGH[preset])).toMatchObject({
      id: preset,
      issuer,
      audiences,
      bearer,
      algorithms: ['RS256'],
      defaultScopes: ['connect', 'exec', 'admin'],
    })
  })

  test.each(Object.entries(ISSUER_PRESETS))(
    'says what it needs and does not have: %s',
    (preset, { needs }) => {
      for (const missing of needs) {
        const inputs = { ...ENOUGH[preset as keyof typeof ENOUGH], [missing]: undefined } as IssuerInputs
        expect(() => issuerFromPreset(preset, inputs)).toThrow(`"${missing}" is missing`)
      }
    },
  )

  test('is combined with the inputs of the operator', () => {
    expect(
      issuerFromPreset('oidc', {
        ...ENOUGH.oidc,
        id: 'work',
        name: 'Work',
        audience: 'one two',
        clientId: 'cli',
        defaultScopes: ['connect'],
        requestScopes: ['openid', 'sandbox:exec'],
        bearer: 'id_token',
        algorithms: ['ES256'],
      }),
    ).toEqual({
      id: 'work',
      name: 'Work',
      issuer: 'https://id.example/',
      audiences: ['one', 'two'],
      algorithms: ['ES256'],
      defaultScopes: ['connect'],
      clientId: 'cli',
      requestScopes: ['openid', 'profile', 'email', 'offline_access', 'sandbox:exec'],
      bearer: 'id_token',
      endpoints: {},
    })
  })

  test.each(['oidc', 'keycloak'] as const)('requests refresh tokens from %s', (preset) => {
    expect(issuerFromPreset(preset, ENOUGH[preset]).requestScopes).toContain('offline_access')
  })

  test('requests a resource and the parameters of the operator', () => {
    const inputs = {
      ...ENOUGH.auth0,
      resource: 'https://sandwire.example/',
      requestParameters: { prompt: 'login' },
    }
    expect(issuerFromPreset('auth0', inputs).requestParameters).toEqual({
      audience: 'https://sandwire.example',
      resource: 'https://sandwire.example/',
      prompt: 'login',
    })
    const { requestParameters } = issuerFromPreset('oidc', { ...ENOUGH.oidc, resource: 'urn:x' })
    expect(requestParameters).toEqual({ resource: 'urn:x' })
  })

  test('requests the first of several audiences', () => {
    const { audiences, requestParameters } = issuerFromPreset('auth0', { ...ENOUGH.auth0, audience: 'a b' })
    expect({ audiences, requestParameters }).toEqual({
      audiences: ['a', 'b'],
      requestParameters: { audience: 'a' },
    })
  })

  test.each([
    ['keycloak', { domain: 'id.example/x?y=' }, '"domain" has an invalid format'],
    ['keycloak', { domain: 'user@id.example' }, '"domain" has an invalid format'],
    ['keycloak', { realm: '../master' }, '"realm" has an invalid format'],
    ['entra', { tenant: 'common' }, '"tenant" must name one tenant'],
    ['oidc', { issuer: 'http://id.example' }, '"issuer" is not an https URL'],
    ['oidc', { id: 'Work' }, '"id" has an invalid format'],
    ['oidc', { audience: ' ' }, '"audience" is missing'],
    ['oidc', { clientId: ' ' }, '"clientId" has an invalid format'],
    ['oidc', { name: 'n'.repeat(65) }, '"name" has an invalid format'],
    ['oidc', { clientId: 'c'.repeat(257) }, '"clientId" has an invalid format'],
    ['oidc', { audience: 'a'.repeat(257) }, '"audience" is too long'],
    ['oidc', { audience: 'a b c d e f g h i' }, '"audience" is too long'],
    ['oidc', { requestParameters: { client_id: 'other' } }, '"client_id" is set by Sandwire itself'],
    ['oidc', { requestParameters: { 'x&y': '1' } }, '"requestParameters" has an invalid format'],
    ['myspace', {}, 'no such preset, expected one of oauth-do, google'],
    ['constructor', {}, 'no such preset'],
  ] as const)('refuses %s with %p', (preset, inputs, why) => {
    const enough = Object.hasOwn(ENOUGH, preset) ? ENOUGH[preset as keyof typeof ENOUGH] : {}
    expect(() => issuerFromPreset(preset, { ...enough, ...inputs })).toThrow(why)
  })
})

test('HTTPS URLs and loopback URLs are secure', () => {
  for (const url of ['https://a.example/b', 'http://127.0.0.1:80', 'http://localhost/x', 'http://[::1]:9'])
    expect([url, isSecureUrl(url)]).toEqual([url, true])
  for (const url of [
    'http://a.example',
    'ftp://localhost',
    'https://u:p@a.example',
    'x',
    'http://localhost.evil',
  ])
    expect([url, isSecureUrl(url)]).toEqual([url, false])
  expect(isLoopbackUrl('https://127.0.0.1.evil')).toBe(false)
})
