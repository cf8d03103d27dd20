import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { startIssuer, type TestIssuer } from '@sandwire/testing/issuer'
import { POLICIES } from '../src/routes/policies.ts'
import { type RunningControl, startControl, TOKEN } from './support/control.ts'
import { FakeIssuer, makeKey, type SigningKey } from './support/fake-issuer.ts'
import { refusalOf, upgrade } from './support/handshake.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'
import { fieldOf } from './support/json.ts'

const SECRET = 'service-secret-of-32-bytes-or-more'
const API_TOKEN = 'api-token-of-at-least-32-characters'

let sandboxes: FakeSandboxes
let control: RunningControl
let real: TestIssuer
let key: SigningKey
let fake: FakeIssuer
let other: FakeIssuer
let people: FakeIssuer
beforeAll(async () => {
  sandboxes = new FakeSandboxes()
  real = await startIssuer()
  key = await makeKey('same-name')
  fake = new FakeIssuer([key])
  other = new FakeIssuer([await makeKey('same-name')])
  people = new FakeIssuer([await makeKey('id')])
  control = await startControl({
    runner: sandboxes,
    config: {
      mode: 'open',
      issuers: [
        real.configFor(),
        fake.config({ clientId: 'cli', audiences: ['sandwire', 'cli'] }),
        other.config({ id: 'other', name: 'Other', defaultScopes: ['connect'] }),
        people.config({ id: 'people', bearer: 'id_token', audiences: ['cli'] }),
      ],
    },
    bindings: { JWT_SECRET: SECRET, API_TOKEN },
  })
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  for (const issuer of [real, fake, other, people]) await issuer[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

type Answer = Record<string, unknown>
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
async function whoami(token: string, at: RunningControl = control): Promise<Answer> {
  const response = await at.fetch('/api/whoami', { headers: bearer(token) })
  const body = Object(await response.json()) as Answer
  return response.status === 200 ? body : { status: response.status, ...Object(body['error']) }
}
const refused = { status: 401, code: 'unauthorized' }

async function serviceToken(
  claims: Answer,
  options: { secret?: string; header?: Answer; hash?: string } = {},
): Promise<string> {
  const encode = (value: unknown): string =>
    new TextEncoder().encode(JSON.stringify(value)).toBase64({ alphabet: 'base64url', omitPadding: true })
  const input = `${encode({ alg: 'HS256', typ: 'JWT', ...options.header })}.${encode(claims)}`
  const bytes = new TextEncoder().encode(options.secret ?? SECRET)
  const hmac = { name: 'HMAC', hash: options.hash ?? 'SHA-256' }
  const imported = await crypto.subtle.importKey('raw', bytes, hmac, false, ['sign'])
  const mac = new Uint8Array(await crypto.subtle.sign('HMAC', imported, new TextEncoder().encode(input)))
  return `${input}.${mac.toBase64({ alphabet: 'base64url', omitPadding: true })}`
}
const soon = (): number => Math.floor(Date.now() / 1000) + 300

describe('a token of a real issuer', () => {
  test('identifies the user and has the scopes it names', async () => {
    const answer = await whoami(await real.mintToken('ann', { scopes: ['sandbox:connect', 'sandbox:exec'] }))
    expect(answer).toMatchObject({ scopes: ['connect', 'exec'], via: 'bearer' })
    expect(String(answer['account'])).toMatch(/^u[0-9a-z]{32}$/)
    expect(Number(answer['expiresMs'])).toBeGreaterThan(Date.now())
    expect(await whoami(await real.mintToken('ann'))).toMatchObject({ account: answer['account'] })
  })

  test('owns the sandboxes it creates, and others do not see them', async () => {
    const ada = bearer(await real.mintToken('ann'))
    const made = await control.fetch('/api/sandboxes', {
      method: 'POST',
      headers: ada,
      json: { name: 'hers' },
    })
    expect(made.status).toBe(201)
    const id = String(fieldOf(await made.json(), 'id'))
    const eve = bearer(await fake.token({ sub: 'ada' }))
    for (const path of [`/api/sandboxes/${id}`, '/api/sandboxes/hers'])
      expect((await control.fetch(path, { headers: eve })).status).toBe(404)
    expect((await control.fetch(`/api/sandboxes/${id}`, { headers: ada })).status).toBe(200)
  })

  test('that has expired or has another audience is refused', async () => {
    expect(await whoami(await real.mintToken('ann', { expiresInSeconds: -100 }))).toMatchObject(refused)
    const elsewhere = await real.mintToken('ann', { audience: 'https://elsewhere.test/' })
    expect(await whoami(elsewhere)).toMatchObject(refused)
  })
})

describe('a user', () => {
  test('is a different account at every issuer', async () => {
    const accounts = await Promise.all(
      [await fake.token(), await other.token(), await fake.token({ sub: 'eve' })].map(
        async (token) => (await whoami(token))['account'],
      ),
    )
    expect(new Set(accounts).size).toBe(3)
  })

  test.each([
    [{ name: 'Ada Lovelace', email: 'ada@example.com' }, 'Ada Lovelace'],
    [{ preferred_username: 'ada' }, 'ada'],
    [{ email: 'ada@example.com' }, 'ada@example.com'],
    [{ name: ' \u001b[31mAda\u202e\r\n  L ' }, '[31mAda L'],
    [{ name: 7, preferred_username: '\u0000', email: 'a@b' }, 'a@b'],
    [{ name: 'x'.repeat(500) }, 'x'.repeat(64)],
    [{ name: `${'x'.repeat(63)}\u{1f600}` }, 'x'.repeat(63)],
  ])('with %j is shown as %p', async (claims, name) => {
    expect(await whoami(await fake.token(claims))).toMatchObject({ name })
  })

  test('without a name is shown as the start of the account id', async () => {
    const { account, name } = await whoami(await fake.token())
    expect(name).toBe(String(account).slice(0, 8))
  })

  test.each([
    [{}, ['connect']],
    [{ scope: 'openid email' }, ['connect']],
    [{ scope: 'openid sandbox:exec sandbox:connect' }, ['connect', 'exec']],
    [{ scp: ['sandbox:connect', 'sandbox:admin'] }, ['connect', 'admin']],
    [{ scp: 'sandbox:connect' }, ['connect']],
    [{ permissions: ['sandbox:connect'], scope: 'sandbox:exec' }, ['connect', 'exec']],
    [{ scope: 'sandbox:connect sandbox:operator operator' }, ['connect']],
  ])('with %j may %j', async (claims, scopes) => {
    expect(await whoami(await other.token(claims))).toMatchObject({ scopes })
  })

  test.each(['sandbox:exec', 'sandbox:unheard-of', 'sandbox:'])(
    'with only "%s" is refused',
    async (scope) => {
      expect(await whoami(await fake.token({ scope }))).toMatchObject({ status: 403, code: 'forbidden' })
    },
  )

  test('is limited to their scopes on every route', async () => {
    const headers = bearer(await other.token())
    const made = await control.fetch('/api/sandboxes', { method: 'POST', headers, json: {} })
    expect(made.status).toBe(403)
    expect((await control.fetch('/metrics', { headers: bearer(await fake.token()) })).status).toBe(403)
  })

  test('attaches with a valid token only', async () => {
    const attach = async (token: string) => {
      const headers = [['Authorization', `Bearer ${token}`]] as const
      return upgrade(control, '/attach?sandbox=wire&cmd=cat', { headers })
    }
    expect(refusalOf(await attach(await fake.token({ exp: 1 })))).toBe('401 unauthorized')
    const handshake = await attach(await fake.token())
    expect(handshake.kind).toBe('open')
    if (handshake.kind === 'open') handshake.socket.reset()
  })
})

describe('two issuers (threat T34)', () => {
  test("do not accept each other's tokens, although their keys have the same kid", async () => {
    expect(await whoami(await fake.token())).toMatchObject({ via: 'bearer' })
    expect(await whoami(await other.token())).toMatchObject({ via: 'bearer' })
    const [ours] = fake.keys
    const [theirs] = other.keys
    if (ours === undefined || theirs === undefined) throw new Error('An issuer has no key')
    expect(await whoami(await fake.token({}, { key: theirs }))).toMatchObject(refused)
    expect(await whoami(await other.token({}, { key: ours }))).toMatchObject(refused)
    expect(await whoami(await fake.token({ iss: other.url }))).toMatchObject(refused)
  })
})

test('only the algorithms configured for an issuer are accepted (threat T34)', async () => {
  const keys = await Promise.all((['RS256', 'ES256', 'EdDSA'] as const).map((alg) => makeKey(alg, alg)))
  await using issuer = new FakeIssuer(keys)
  await using control2 = await startControl({
    runner: sandboxes,
    config: { issuers: [issuer.config({ algorithms: ['ES256', 'EdDSA'] })] },
  })
  const [rsa, ...pinned] = keys
  for (const signedBy of pinned)
    expect(await whoami(await issuer.token({}, { key: signedBy }), control2)).toMatchObject({ via: 'bearer' })
  if (rsa === undefined) throw new Error('There is no key')
  expect(await whoami(await issuer.token({}, { key: rsa }), control2)).toMatchObject(refused)
})

describe('a token of another kind (threat T34)', () => {
  test('than an access token is refused where one is expected', async () => {
    const plain = { header: { typ: 'JWT' } }
    for (const claims of [
      { nonce: 'n' },
      { at_hash: 'h' },
      { typ: 'ID' },
      { typ: 'Refresh' },
      // Has our client as audience, like an ID token, and no typ that excludes one.
      { aud: 'cli' },
    ])
      expect([claims, await whoami(await fake.token(claims, plain))]).toMatchObject([claims, refused])
    for (const claims of [{}, { typ: 'Bearer', nonce: 'n' }, { aud: 'cli', scope: 'openid' }])
      expect([claims, await whoami(await fake.token(claims, plain))]).toMatchObject([
        claims,
        { via: 'bearer' },
      ])
    expect(await whoami(await fake.token({ aud: 'cli' }))).toMatchObject({ via: 'bearer' })
  })

  test('than an ID token is refused where one is expected', async () => {
    const token = (claims: Answer, typ: string | undefined) =>
      people.token({ aud: 'cli', ...claims }, { header: { typ } })
    expect(await whoami(await token({ nonce: 'n' }, 'JWT'))).toMatchObject({ via: 'bearer' })
    expect(await whoami(await token({ azp: 'cli' }, undefined))).toMatchObject({ via: 'bearer' })
    expect(await whoami(await token({}, 'at+jwt'))).toMatchObject(refused)
    expect(await whoami(await token({ azp: 'a user' }, 'JWT'))).toMatchObject(refused)
    expect(await whoami(await token({ typ: 'Bearer' }, 'JWT'))).toMatchObject(refused)
  })
})

describe('a service token', () => {
  test('identifies the user, also in the format of older services', async () => {
    const answer = await whoami(await serviceToken({ sub: 'bot', exp: soon() }))
    expect(answer).toMatchObject({ scopes: ['connect', 'exec', 'admin'], via: 'bearer' })
    const older = await serviceToken({ userId: 'bot', email: 'bot@example.com', exp: soon() })
    expect(await whoami(older)).toMatchObject({ account: answer['account'], name: 'bot@example.com' })
    const narrow = await serviceToken({ sub: 'bot', exp: soon(), scope: 'sandbox:connect', aud: 'sandwire' })
    expect(await whoami(narrow)).toMatchObject({ scopes: ['connect'] })
  })

  test('is never an account of an issuer', async () => {
    const claims = fake.claims()
    const answer = await whoami(await serviceToken({ ...claims, aud: ['sandwire'] }))
    expect(answer).toMatchObject({ via: 'bearer' })
    expect(answer['account']).not.toBe((await whoami(await fake.token()))['account'])
  })

  test('is a different account for each service that names itself as issuer (threat T34)', async () => {
    const accounts = await Promise.all(
      [{}, { iss: 'a' }, { iss: 'b' }].map(async (claims) => {
        const answer = await whoami(await serviceToken({ sub: 'bot', exp: soon(), ...claims }))
        return answer['account']
      }),
    )
    expect(new Set(accounts).size).toBe(3)
    expect(accounts).not.toContain(undefined)
    const again = await whoami(await serviceToken({ sub: 'bot', exp: soon() + 1, iss: 'a' }))
    expect(again['account']).toBe(accounts[1])
  })

  test('is refused when any part of it is invalid (threat T34)', async () => {
    for (const token of [
      await serviceToken({ sub: 'bot', exp: soon(), iss: '' }),
      await serviceToken({ sub: 'bot', exp: soon(), iss: 7 }),
      await serviceToken({ sub: 'bot', exp: soon(), cnf: { jkt: 'x' } }),
      await serviceToken({ sub: 'bot', exp: soon() }, { secret: `${SECRET}x` }),
      await serviceToken({ sub: 'bot', exp: soon() }, { secret: ''.padEnd(32, '\u0000') }),
      await serviceToken({ sub: 'bot', exp: soon() }, { header: { alg: 'HS384' }, hash: 'SHA-384' }),
      await serviceToken({ sub: 'bot', exp: soon() }, { header: { alg: 'none' } }),
      await serviceToken({ sub: 'bot', exp: soon() }, { header: { crit: ['exp'] } }),
      await serviceToken({ sub: 'bot' }),
      await serviceToken({ sub: 'bot', exp: 1 }),
      await serviceToken({ sub: 'bot', exp: soon() + 25 * 60 * 60 }),
      await serviceToken({ exp: soon() }),
      await serviceToken({ sub: 'bot', userId: 'boss', exp: soon() }),
      await serviceToken({ sub: 'bot', exp: soon(), aud: 'billing' }),
      await serviceToken({ email: 'bot@example.com', exp: soon() }),
    ])
      expect([token, await whoami(token)]).toMatchObject([token, refused])
  })
})

describe('the API token', () => {
  test('has every scope, in an account of its own', async () => {
    const answer = await whoami(API_TOKEN)
    expect(answer).toMatchObject({
      name: 'API token',
      scopes: ['connect', 'exec', 'admin', 'operator'],
      expiresMs: null,
    })
    expect(answer['account']).not.toBe('local')
    expect((await control.fetch('/metrics', { headers: bearer(API_TOKEN) })).status).toBe(200)
  })

  test('is compared exactly', async () => {
    for (const token of [
      API_TOKEN.slice(0, -1),
      `${API_TOKEN}x`,
      API_TOKEN.toUpperCase(),
      'x',
      `swl_${API_TOKEN}`,
    ])
      expect([token, await whoami(token)]).toMatchObject([token, refused])
    for (const authorization of ['Bearer', `Basic ${API_TOKEN}`, API_TOKEN, `Bearer ${API_TOKEN} x`])
      expect((await control.fetch('/api/whoami', { headers: { authorization } })).status).toBe(401)
  })
})

describe('the list of sign-in methods', () => {
  test('is public and contains no secret', async () => {
    const response = await control.fetch('/api/auth', { headers: { authorization: '' } })
    expect(response.status).toBe(200)
    const text = await response.text()
    expect(JSON.parse(text)).toMatchObject({
      mode: 'open',
      local: true,
      issuers: [
        { issuer: real.url, clientId: real.clientId, bearer: 'access_token' },
        {
          id: 'fake',
          name: 'Fake',
          issuer: fake.url,
          requestScopes: ['openid'],
          requestParameters: {},
          endpoints: {},
        },
        { id: 'other' },
        { id: 'people', bearer: 'id_token' },
      ],
    })
    for (const secret of [SECRET, API_TOKEN, TOKEN]) expect(text).not.toContain(secret)
  })
})

describe('a server that other machines reach', () => {
  test.each([
    [{ localTokenSha256: undefined }, {}, 'no identity issuer is configured'],
    [{}, {}, 'no identity issuer is configured'],
    [{}, { JWT_SECRET: 'short' }, 'JWT_SECRET is shorter than 32 bytes'],
    [{}, { JWT_SECRET: SECRET, API_TOKEN: 'short' }, 'API_TOKEN is shorter than 32 characters'],
    [{}, { API_TOKEN: `swl_${'t'.repeat(43)}` }, 'API_TOKEN has the format of another kind of token'],
    [{}, { API_TOKEN: `a.b.${'c'.repeat(40)}` }, 'API_TOKEN has the format of another kind of token'],
    [{}, { API_TOKEN: '', JWT_SECRET: '' }, 'no identity issuer is configured'],
  ])('serves no request without authentication settings: %j %j', async (config, bindings, why) => {
    await using closed = await startControl({
      runner: sandboxes,
      config: { mode: 'open', ...config },
      bindings,
    })
    for (const route of Object.keys(POLICIES)) {
      const [method = '', path = ''] = route.split(' ')
      const { status } = await closed.fetch(path, { method, headers: bearer(TOKEN) })
      expect([route, status]).toEqual([route, /^\/(healthz?|readyz)$/.test(path) ? 200 : 503])
    }
    expect(refusalOf(await upgrade(closed, '/attach?cmd=cat', {}))).toBe('503 no_issuer')
    const answer = await closed.fetch('/api/sandboxes')
    expect(await answer.json()).toMatchObject({
      error: { code: 'no_issuer', message: `Cannot authenticate anyone: ${why}` },
    })
  })

  test('has no local identity unless the host configured one', async () => {
    await using open = await startControl({
      runner: sandboxes,
      config: { mode: 'open', localTokenSha256: undefined },
      bindings: { API_TOKEN },
    })
    expect(await whoami(TOKEN, open)).toMatchObject(refused)
    expect(await whoami(API_TOKEN, open)).toMatchObject({ name: 'API token' })
    expect(await (await open.fetch('/api/auth')).json()).toEqual({ mode: 'open', local: false, issuers: [] })
  })
})

describe('an unavailable issuer', () => {
  test('gets few requests when many tokens arrive at once, and all are accepted', async () => {
    await using crowded = new FakeIssuer([key])
    await using control2 = await startControl({
      runner: sandboxes,
      config: { issuers: [crowded.config()] },
    })
    const token = await crowded.token()
    const answers = await Promise.all(Array.from({ length: 60 }, () => whoami(token, control2)))
    expect(answers.filter(({ via }) => via === 'bearer')).toHaveLength(60)
    expect(crowded.requested.length).toBeLessThanOrEqual(8)
  })

  test('locks out only its own users, temporarily, and the error says so', async () => {
    await using down = new FakeIssuer([key])
    await using control2 = await startControl({
      runner: sandboxes,
      config: { issuers: [down.config({ id: 'down', name: 'Down' }), fake.config()] },
    })
    for (const behavior of ['broken', 'redirecting', 'endless', 'lying'] as const) {
      down.behavior = behavior
      expect(await whoami(await down.token(), control2)).toMatchObject({
        status: 503,
        code: 'issuer_unavailable',
      })
    }
    const { headers } = await control2.fetch('/api/whoami', { headers: bearer(await down.token()) })
    expect(headers.get('retry-after')).toBe('5')
    expect(down.requested.some((path) => path.startsWith('/elsewhere'))).toBe(false)
    // Tokens that are invalid without a key are still refused.
    expect(await whoami(await down.token({ exp: 1 }), control2)).toMatchObject(refused)
    expect(await whoami(await fake.token(), control2)).toMatchObject({ via: 'bearer' })
    expect(await whoami(TOKEN, control2)).toMatchObject({ account: 'local' })
  })
})
