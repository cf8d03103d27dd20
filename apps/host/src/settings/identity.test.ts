import { describe, expect, test } from 'bun:test'
import { hasIdentity, type Identity, validateIdentity, listIdentities } from './identity.ts'
import { validateSettingsFile } from './settings-file.ts'

function validate(
  env: Record<string, string>,
  settings?: unknown,
): { readonly identity: Identity; readonly passed: unknown; readonly problems: string[] } {
  const problems: string[] = []
  const text = typeof settings === 'string' ? settings : JSON.stringify(settings)
  const file = validateSettingsFile('/s', () => (settings === undefined ? undefined : text), problems)
  const context = {
    env,
    readFile: (name: string) => (name === '/ca' ? '-----BEGIN CERTIFICATE-----' : undefined),
    readSecretFile: () => '',
  }
  return { identity: validateIdentity(context, file.issuers, problems), passed: file.passed, problems }
}

const KEYCLOAK = {
  SANDWIRE_ISSUER: 'keycloak',
  SANDWIRE_ISSUER_DOMAIN: 'id.example',
  SANDWIRE_ISSUER_REALM: 'team',
  SANDWIRE_ISSUER_AUDIENCE: 'sandwire',
  SANDWIRE_ISSUER_CLIENT_ID: 'web',
}

describe('validateIdentity', () => {
  test('has no identities by default', () => {
    const { identity, problems } = validate({})
    expect(problems).toEqual([])
    expect(hasIdentity(identity)).toBe(false)
    expect(listIdentities(identity)).toEqual([])
  })

  test('builds an issuer from a preset and variables', () => {
    const { identity, problems } = validate(KEYCLOAK)
    expect(problems).toEqual([])
    expect(identity.issuers).toMatchObject([
      { id: 'keycloak', issuer: 'https://id.example/realms/team', audiences: ['sandwire'], clientId: 'web' },
    ])
    expect(hasIdentity(identity)).toBe(true)
    expect(listIdentities(identity)).toEqual(['Keycloak (https://id.example/realms/team)'])
  })

  test('accepts the URL of an issuer without a preset', () => {
    const { identity } = validate({ SANDWIRE_ISSUER: 'https://id.example/x', SANDWIRE_ISSUER_AUDIENCE: 'a' })
    expect(identity.issuers).toMatchObject([{ id: 'oidc', issuer: 'https://id.example/x' }])
  })

  test('adds issuers of the settings file', () => {
    const { identity, problems } = validate(KEYCLOAK, {
      issuers: [
        { issuer: 'google', clientId: 'g' },
        { issuer: 'https://two.example', audience: 'a', id: 'two', name: 'Two', defaultScopes: ['connect'] },
      ],
    })
    expect(problems).toEqual([])
    expect(identity.issuers.map(({ id }) => id)).toEqual(['keycloak', 'google', 'two'])
    expect(identity.issuers[2]).toMatchObject({ name: 'Two', defaultScopes: ['connect'] })
  })

  test('reads the resource (RFC 8707) from a variable or the settings file', () => {
    const settings = {
      issuers: [
        {
          issuer: 'https://two.example',
          audience: 'a',
          id: 'two',
          requestParameters: { resource: 'urn:two' },
        },
        { issuer: 'https://three.example', audience: 'a', id: 'three', resource: 'urn:three' },
      ],
    }
    const { identity, problems } = validate({ ...KEYCLOAK, SANDWIRE_ISSUER_RESOURCE: 'urn:one' }, settings)
    expect(problems).toEqual([])
    expect(identity.issuers.map(({ requestParameters }) => requestParameters?.['resource'])).toEqual([
      'urn:one',
      'urn:two',
      'urn:three',
    ])
  })

  test('names the missing variable of an issuer that is configured by variables', () => {
    expect(validate({ SANDWIRE_ISSUER: 'https://id.example/x' }).problems).toEqual([
      'Cannot use issuer "oidc": "audience" is missing (SANDWIRE_ISSUER_AUDIENCE)',
    ])
    expect(validate({}, { issuers: [{ issuer: 'https://id.example/x' }] }).problems).toEqual([
      'Cannot use issuer "oidc": "audience" is missing',
    ])
  })

  test('refuses a blank audience', () => {
    expect(validate({ ...KEYCLOAK, SANDWIRE_ISSUER_AUDIENCE: ' ' }).problems).toEqual([
      expect.stringContaining('"audience" is missing'),
    ])
  })

  test('reports every problem', () => {
    const env = { SANDWIRE_ISSUER: 'http://id.example', SANDWIRE_ISSUER_AUDIENCE: 'a', JWT_SECRET: 'short' }
    const { problems } = validate(env, { issuers: [{ issuer: 'nobody' }, { issuer: 'keycloak' }], more: 1 })
    expect(problems).toHaveLength(5)
  })

  test.each<[Record<string, string>, unknown]>([
    [{ SANDWIRE_ISSUER_CLIENT_ID: 'c' }, undefined],
    [{}, 'junk'],
    [{}, '[]'],
    [{}, { issuers: 'x' }],
    [{}, { issuers: [{ issuer: 'google', clientId: 'g', surprise: 1 }] }],
    [{}, { issuers: [{ issuer: 'google', clientId: 'g', defaultScopes: ['operator'] }] }],
    [{}, { commands: { free: 'yes' } }],
    [{}, { limits: { sessionsPerSandbox: -1 } }],
    [{}, { limits: { surprise: 1 } }],
    [{}, { tokenInUrl: 'yes' }],
    [{}, { sessionTokenMinutes: 5 }],
    [{}, { hosts: ['evil'] }],
    [{}, { localTokenSha256: 'x' }],
    [KEYCLOAK, { issuers: [{ issuer: 'google', clientId: 'g', id: 'keycloak' }] }],
    [KEYCLOAK, { issuers: [{ issuer: 'https://id.example/realms/team', audience: 'a' }] }],
    [{ SANDWIRE_ISSUER_CA_FILE: '/nothing' }, undefined],
  ])('refuses %j with %j', (env, settings) => {
    expect(validate(env, settings).problems).toHaveLength(1)
  })

  test.each<[unknown, readonly string[]]>([
    [
      { limits: { sessionsPerSandbox: -1, surprise: 1, outputBytesPerSecond: 'x' } },
      [
        '"/s": limits: "surprise" is not a setting',
        '"/s": limits: "sessionsPerSandbox" must be a whole number from 1 to 10000',
        '"/s": limits: "outputBytesPerSecond" must be a whole number from 0 to 1099511627776',
      ],
    ],
    [
      { sessions: { idleSeconds: -1, ptyReattachSeconds: 604_801, surprise: 1 } },
      [
        '"/s": sessions: "surprise" is not a setting',
        '"/s": sessions: "idleSeconds" must be a whole number from 0 to 31536000',
        '"/s": sessions: "ptyReattachSeconds" must be a whole number from 0 to 604800',
      ],
    ],
    [{ limits: 5 }, ['"/s": limits: expected an object']],
    [
      { sessionTokenMinutes: 5, tokenInUrl: 'yes' },
      [
        '"/s": "sessionTokenMinutes" must be a whole number from 15 to 60',
        '"/s": "tokenInUrl" must be true or false',
      ],
    ],
    [
      {
        issuers: [
          { issuer: 'google', clientId: 'g', surprise: 1 },
          { clientId: 5, defaultScopes: ['all'], algorithms: ['none'] },
          'x',
        ],
      },
      [
        '"/s": issuers[0]: "surprise" is not a setting',
        '"/s": issuers[1]: "issuer" must be a preset or the URL of an issuer',
        '"/s": issuers[1]: "clientId" must be a text',
        '"/s": issuers[1]: "defaultScopes" must be a list of connect, exec, admin',
        '"/s": issuers[1]: "algorithms" must be a list of RS256, PS256, ES256, EdDSA',
        '"/s": issuers[2]: expected an object',
      ],
    ],
    [{ commands: { free: 'yes' } }, ['"/s": commands: "free" must be exec-scope or nobody']],
  ])('names each invalid setting and its valid values: %j', (settings, problems) => {
    expect(validate({}, settings).problems).toEqual([...problems])
  })

  test('passes control’s settings unchanged', () => {
    expect(validate({}, { limits: { sessionsPerSandbox: 1 }, tokenInUrl: true }).passed).toEqual({
      limits: { sessionsPerSandbox: 1 },
      tokenInUrl: true,
    })
  })
})
