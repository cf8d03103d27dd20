import { afterEach, beforeEach, describe, expect, setSystemTime, test } from 'bun:test'
import type { IssuerConfig } from '@sandwire/operator-settings'
import { IssuerClient, KEYS_COOLDOWN_MS, KEYS_LIFE_MS, RETRY_PAUSE_MS } from '../src/auth/issuer-client.ts'
import { FakeIssuer, makeKey, type SigningKey } from './support/fake-issuer.ts'
import { fieldOf } from './support/json.ts'

let one: SigningKey
let two: SigningKey
let issuer: FakeIssuer
beforeEach(async () => {
  one = await makeKey('one', 'ES256')
  two = await makeKey('two', 'ES256')
  issuer = new FakeIssuer([one])
})
afterEach(async () => {
  setSystemTime()
  await issuer[Symbol.asyncDispose]()
})

const keysOf = (changes: Partial<IssuerConfig> = {}): IssuerClient =>
  new IssuerClient(
    issuer.config({ algorithms: ['ES256'], ...changes }),
    (url, init) => fetch(url, init),
    Date.now,
  )
const after = (ms: number): void => void setSystemTime(new Date(Date.now() + ms))

/** The outcome of a key request: its type, or the error. */
async function ask(keys: IssuerClient, kid: unknown): Promise<string> {
  try {
    return (await keys.findKey({ alg: 'ES256', ...(kid === undefined ? {} : { kid: kid as string }) })).type
  } catch (caught) {
    return String(fieldOf(caught, 'code'))
  }
}
const count = (path: string): number => issuer.requested.filter((each) => each === path).length

describe('the keys of an issuer', () => {
  test('are located by its metadata and fetched once', async () => {
    const keys = keysOf()
    for (let at = 0; at < 5; at++) expect(await ask(keys, 'one')).toBe('public')
    expect(issuer.requested).toEqual(['/.well-known/openid-configuration', '/keys'])
  })

  test('are fetched from the configured URL without metadata', async () => {
    expect(await ask(keysOf({ endpoints: { jwks: `${issuer.url}/keys` } }), 'one')).toBe('public')
    expect(issuer.requested).toEqual(['/keys'])
  })

  test('are selected by kid only', async () => {
    const keys = keysOf()
    for (const kid of [undefined, '', 'two', 'One', '__proto__', 7, null]) {
      expect([kid, await ask(keys, kid)]).toEqual([kid, 'unauthorized'])
      after(KEYS_COOLDOWN_MS + 1)
    }
  })

  test('newer than the cache are reported as unavailable, not as invalid', async () => {
    // From here on the clock is virtual.
    after(0)
    const keys = keysOf()
    expect(await ask(keys, 'one')).toBe('public')
    issuer.keys = [one, two]
    after(KEYS_COOLDOWN_MS / 2)
    // Too soon to fetch again: unavailable, with a retry-after.
    const error: unknown = await keys.findKey({ alg: 'ES256', kid: 'two' }).catch((error: unknown) => error)
    expect(error).toMatchObject({ code: 'issuer_unavailable', retryAfterMs: KEYS_COOLDOWN_MS / 2 })
    expect(count('/keys')).toBe(1)
    after(KEYS_COOLDOWN_MS / 2 + 1)
    expect(await ask(keys, 'two')).toBe('public')
    expect(await ask(keys, 'one')).toBe('public')
    expect(count('/keys')).toBe(2)
  })

  test('are fetched once for concurrent requests with an unknown kid', async () => {
    const keys = keysOf()
    expect(await ask(keys, 'one')).toBe('public')
    after(KEYS_COOLDOWN_MS + 1)
    const outcomes = await Promise.all(Array.from({ length: 20 }, (_, at) => ask(keys, `unknown-${at}`)))
    expect(new Set(outcomes)).toEqual(new Set(['unauthorized']))
    expect(count('/keys')).toBe(2)
  })

  test('with a duplicate kid are not used', async () => {
    issuer.keys = [one, { ...two, publicJwk: { ...two.publicJwk, kid: 'one' } }]
    expect(await ask(keysOf(), 'one')).toBe('unauthorized')
  })

  test('are used only if they are public signature keys (threat T34)', async () => {
    const secret = { kty: 'oct', k: 'c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA', kid: 'one' }
    for (const jwk of [
      secret,
      { ...one.publicJwk, use: 'enc' },
      { ...one.publicJwk, key_ops: ['encrypt'] },
      { ...one.publicJwk, alg: 'ES384' },
      { ...one.publicJwk, crv: 'P-384' },
    ]) {
      issuer.keys = [{ ...one, publicJwk: jwk }]
      expect([jwk, await ask(keysOf(), 'one')]).toEqual([jwk, 'unauthorized'])
    }
  })

  test('can be rotated: a new one is found, an old one expires', async () => {
    const keys = keysOf()
    expect(await ask(keys, 'one')).toBe('public')
    issuer.keys = [one, two]
    after(KEYS_COOLDOWN_MS + 1)
    expect(await ask(keys, 'two')).toBe('public')
    issuer.keys = [two]
    expect(await ask(keys, 'one')).toBe('public')
    after(KEYS_LIFE_MS + 1)
    expect(await ask(keys, 'one')).toBe('unauthorized')
    expect(await ask(keys, 'two')).toBe('public')
  })

  test('are not fetched repeatedly for unknown kids (threat T34)', async () => {
    const keys = keysOf()
    for (let at = 0; at < 9; at++) {
      await ask(keys, `unknown-${at}`)
      after(KEYS_COOLDOWN_MS / 10)
    }
    expect(count('/keys')).toBe(1)
    after(KEYS_COOLDOWN_MS + 1)
    for (let at = 0; at < 50; at++) await ask(keys, `unknown-${at}`)
    expect(count('/keys')).toBe(2)
  })

  test('of one issuer are never used for another (threat T34)', async () => {
    await using other = new FakeIssuer([two])
    const mine = keysOf()
    const theirs = new IssuerClient(other.config(), (url, init) => fetch(url, init), Date.now)
    expect(await ask(mine, 'one')).toBe('public')
    expect(await ask(theirs, 'two')).toBe('public')
    after(KEYS_COOLDOWN_MS + 1)
    expect(await ask(mine, 'two')).toBe('unauthorized')
    expect(await ask(theirs, 'one')).toBe('unauthorized')
  })
})

describe('an unavailable issuer', () => {
  test.each(['broken', 'redirecting', 'endless', 'lying'] as const)(
    'authenticates no one: %s',
    async (behavior) => {
      const keys = keysOf()
      issuer.behavior = behavior
      expect(await ask(keys, 'one')).toBe('issuer_unavailable')
      // No redirect was followed.
      expect(issuer.requested.some((path) => path.startsWith('/elsewhere'))).toBe(false)
      issuer.behavior = 'well'
      after(RETRY_PAUSE_MS + 1)
      expect(await ask(keys, 'one')).toBe('public')
    },
  )

  test.each(['broken', 'redirecting', 'endless'] as const)('provides no keys: %s', async (behavior) => {
    const keys = keysOf({ endpoints: { jwks: `${issuer.url}/keys` } })
    issuer.behavior = behavior
    expect(await ask(keys, 'one')).toBe('issuer_unavailable')
    expect(issuer.requested).toEqual(['/keys'])
  })

  test('times out', async () => {
    const keys = keysOf()
    issuer.behavior = 'silent'
    expect(await ask(keys, 'one')).toBe('issuer_unavailable')
  })

  test.each([
    '{"keys":{}}',
    '{"keys":[null]}',
    '{"__proto__":{"keys":[]}}',
    '[]',
    'null',
    '',
    '{',
    `${'['.repeat(100_000)}${']'.repeat(100_000)}`,
  ])('is reported for malformed keys (threat T35)', async (text) => {
    const config = issuer.config({ endpoints: { jwks: 'https://id.example/keys' } })
    const keys = new IssuerClient(config, () => Promise.resolve(new Response(text)), Date.now)
    expect(await ask(keys, 'one')).toBe('issuer_unavailable')
  })

  test('is not contacted again for a while', async () => {
    const keys = keysOf()
    issuer.behavior = 'broken'
    for (let at = 0; at < 20; at++) expect(await ask(keys, 'one')).toBe('issuer_unavailable')
    // Once at each location of metadata.
    expect(issuer.requested).toHaveLength(2)
  })

  test('is contacted by a limited number of requests at a time', async () => {
    let open = 0
    let most = 0
    const counted = async (url: string, init: RequestInit): Promise<Response> => {
      open += 1
      most = Math.max(most, open)
      const response = await fetch(url, init)
      open -= 1
      return response
    }
    const keys = new IssuerClient(issuer.config(), counted, Date.now)
    const outcomes = await Promise.all(Array.from({ length: 100 }, () => ask(keys, 'one')))
    expect(new Set(outcomes)).toEqual(new Set(['public']))
    expect(most).toBeLessThanOrEqual(4)
    expect(issuer.requested.length).toBeLessThanOrEqual(8)
  })

  test('is contacted again after canceled requests', async () => {
    let isStuck = true
    const sometimes = (url: string, init: RequestInit): Promise<Response> =>
      isStuck ? new Promise(() => undefined) : fetch(url, init)
    const keys = new IssuerClient(issuer.config(), sometimes, Date.now)
    for (let at = 0; at < 20; at++) void ask(keys, 'one')
    await Promise.resolve()
    isStuck = false
    after(60_000)
    expect(await ask(keys, 'one')).toBe('public')
  })

  test('is trusted until its cached keys expire', async () => {
    const keys = keysOf()
    expect(await ask(keys, 'one')).toBe('public')
    issuer.behavior = 'broken'
    after(KEYS_LIFE_MS - 1_000)
    expect(await ask(keys, 'one')).toBe('public')
    after(2_000)
    expect(await ask(keys, 'one')).toBe('issuer_unavailable')
  })

  test.each([
    ['https://id.example', 'http://keys.example/keys'],
    ['https://id.example', 'ftp://keys.example/keys'],
    ['https://id.example', 'https://user:pass@keys.example/'],
    // An issuer on the network must not direct us to services of this machine.
    ['https://id.example', 'http://127.0.0.1/keys'],
    ['https://id.example', 'https://localhost/keys'],
    ['http://127.0.0.1', 'http://keys.example/keys'],
    ['https://id.example', 7],
    ['https://id.example', undefined],
  ])('is reported for issuer %s with keys at %p, which is not contacted', async (name, keysUrl) => {
    const fetched: string[] = []
    const answer = (url: string): Promise<Response> => {
      fetched.push(url)
      const isMetadata = url.includes('.well-known')
      return Promise.resolve(
        Response.json(isMetadata ? { issuer: name, jwks_uri: keysUrl } : { keys: [one.publicJwk] }),
      )
    }
    const keys = new IssuerClient(issuer.config({ issuer: name }), answer, Date.now)
    expect(await ask(keys, 'one')).toBe('issuer_unavailable')
    expect(fetched).toEqual([`${name}/.well-known/openid-configuration`])
  })

  test('may keep its keys at another host', async () => {
    const answer = (url: string): Promise<Response> =>
      Promise.resolve(
        Response.json(
          url === 'https://keys.example/'
            ? { keys: [one.publicJwk] }
            : { issuer: 'https://id.example', jwks_uri: 'https://keys.example/' },
        ),
      )
    const keys = new IssuerClient(issuer.config({ issuer: 'https://id.example' }), answer, Date.now)
    expect(await ask(keys, 'one')).toBe('public')
  })
})

test.each([
  ['https://id.example/', 'https://id.example/.well-known/oauth-authorization-server'],
  ['https://id.example/realms/a', 'https://id.example/.well-known/oauth-authorization-server/realms/a'],
])('metadata of %s is read from OpenID Connect Discovery, then from RFC 8414', async (name, fallback) => {
  const requested: string[] = []
  const respond = (url: string): Promise<Response> => {
    requested.push(url)
    return Promise.resolve(
      url === fallback ? Response.json({ issuer: name }) : new Response(null, { status: 404 }),
    )
  }
  const client = new IssuerClient(issuer.config({ issuer: name }), respond, Date.now)
  await client.findServer().catch(() => undefined)
  expect(requested).toEqual([`${name.replace(/\/$/, '')}/.well-known/openid-configuration`, fallback])
})
