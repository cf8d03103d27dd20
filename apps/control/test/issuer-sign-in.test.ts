import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { startIssuer, type TestIssuer } from '@sandwire/testing/issuer'
import { CookieJar } from './support/cookie-jar.ts'
import { type RunningControl, startControl } from './support/control.ts'
import { FakeIssuer, makeKey } from './support/fake-issuer.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'
import { fieldOf } from './support/json.ts'

const LOGIN = '__Host-sandwire-login'
const COOKIE = '__Host-sandwire'

let sandboxes: FakeSandboxes
let issuer: TestIssuer
let malicious: FakeIssuer
let control: RunningControl
beforeAll(async () => {
  sandboxes = new FakeSandboxes()
  issuer = await startIssuer({
    users: {
      ann: { name: 'Ann Archer', email: 'ann@example.test', scopes: ['sandbox:connect', 'sandbox:exec'] },
      bob: {
        name: 'Bob Baker',
        email: 'bob@example.test',
        scopes: ['sandbox:connect', 'sandbox:exec', 'sandbox:admin'],
      },
      eve: { name: 'Eve Evans', email: 'eve@example.test', scopes: ['sandbox:connect'] },
      zoe: { name: 'Zoe', email: 'zoe@example.test', scopes: [] },
    },
  })
  const { clientId: _, ...tokensOnly } = issuer.configFor({ id: 'tokens-only', issuer: 'http://127.0.0.1:1' })
  const away = issuer.configFor({ id: 'away', issuer: 'http://127.0.0.1:2' })
  malicious = new FakeIssuer([await makeKey('k')])
  malicious.metadata = {
    authorization_endpoint: `${malicious.url}/authorize`,
    token_endpoint: `${malicious.url}/token`,
  }
  control = await startControl({
    runner: sandboxes,
    config: { issuers: [issuer.configFor(), tokensOnly, away, malicious.config({ id: 'malicious' })] },
  })
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
  await malicious[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

function locationOf(response: Response): URL {
  expect(response.status).toBe(303)
  return new URL(response.headers.get('location') ?? '', control.origin)
}

/** Follows the redirect to the issuer and returns its URL. */
async function leave(jar: CookieJar, query = 'issuer=test'): Promise<URL> {
  return locationOf(await jar.open(`/signin/start?${query}`))
}

/** Path and query of the issuer's redirect. */
async function comeBack(authorization: URL, caller: string): Promise<string> {
  const { origin, pathname, search } = await issuer.signIn(authorization, caller)
  expect(origin + pathname).toBe(`${control.origin}/signin/callback/test`)
  return pathname + search
}

async function signIn(caller: string): Promise<CookieJar> {
  const jar = new CookieJar(control)
  const response = await jar.open(await comeBack(await leave(jar), caller))
  expect(locationOf(response).href).toBe(`${control.origin}/`)
  return jar
}

/** Expects no sign-in, and an error page without request data. */
async function expectRefused(jar: CookieJar, response: Response, status = 400): Promise<string> {
  expect(response.status).toBe(status)
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(jar.cookies.has(COOKIE)).toBe(false)
  expect(await jar.statusOfWhoami()).toBe(401)
  return response.text()
}

describe('signing in through an issuer', () => {
  test('gives the browser a sign-in of its own, with the scopes of the issuer', async () => {
    const jar = new CookieJar(control)
    const started = await jar.open('/signin/start?issuer=test&to=%2Fjoin%3Fa%3D1')
    expect(started.headers.get('set-cookie')).toMatch(
      /^__Host-sandwire-login=[\w-]+; Path=\/; HttpOnly; Secure; SameSite=Lax; Max-Age=600$/,
    )
    const authorization = locationOf(started)
    expect(Object.fromEntries(authorization.searchParams)).toMatchObject({
      response_type: 'code',
      code_challenge_method: 'S256',
      redirect_uri: `${control.origin}/signin/callback/test`,
      scope: 'openid profile email sandbox:connect sandbox:exec sandbox:admin',
    })
    const response = await jar.open(await comeBack(authorization, 'ann'))
    expect(locationOf(response).href).toBe(`${control.origin}/join?a=1`)
    const [cookie = '', forgotten = ''] = response.headers.getSetCookie()
    expect(cookie).toMatch(
      /^__Host-sandwire=sws_u[a-z0-9]{32}\.[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; Secure; SameSite=Strict$/,
    )
    expect(forgotten).toMatch(/^__Host-sandwire-login=; .*Max-Age=0$/)
    expect(jar.cookies.has(LOGIN)).toBe(false)
    expect(await (await jar.read('/api/whoami')).json()).toMatchObject({
      name: 'Ann Archer',
      scopes: ['connect', 'exec'],
      via: 'cookie',
    })
  })

  test('results in the same account as a token of the user', async () => {
    const jar = await signIn('ann')
    const token = await issuer.mintToken('ann')
    const byToken = await control.fetch('/api/whoami', { headers: { authorization: `Bearer ${token}` } })
    const { account } = (await byToken.json()) as { account: string }
    expect(await (await jar.read('/api/whoami')).json()).toMatchObject({ account })
    expect(await (await (await signIn('eve')).read('/api/whoami')).json()).not.toMatchObject({ account })
  })

  test('is refused to a user without scopes', async () => {
    const jar = new CookieJar(control)
    const back = await comeBack(await leave(jar), 'zoe')
    expect(await expectRefused(jar, await jar.open(back), 403)).toContain('has no access to this server')
  })

  test('reports that the user declined, without text of the issuer', async () => {
    const jar = new CookieJar(control)
    const back = await issuer.refuse(await leave(jar))
    back.searchParams.set('error_description', '<script>alert(1)</script> CANARY')
    const page = await expectRefused(jar, await jar.open(back.pathname + back.search), 403)
    expect(page).toContain('The sign-in was canceled or denied.')
    expect(page).not.toMatch(/CANARY|alert\(|access_denied/)
    expect(jar.cookies.has(LOGIN)).toBe(false)
  })

  test('reports that the issuer is unavailable', async () => {
    const jar = new CookieJar(control)
    const response = await jar.open('/signin/start?issuer=away')
    expect(await expectRefused(jar, response, 503)).toContain('The identity provider is not responding.')
  })

  test('redirects to the sign-in page when the issuer does not support browser sign-in', async () => {
    for (const query of ['', 'issuer=nobody', 'issuer=tokens-only', 'issuer=__proto__', 'issuer=../test'])
      expect((await leave(new CookieJar(control), query)).href).toBe(`${control.origin}/signin`)
  })

  test('logs no secret', async () => {
    const jar = new CookieJar(control)
    const authorization = await leave(jar)
    const login = jar.cookies.get(LOGIN) ?? ''
    const back = await comeBack(authorization, 'ann')
    await jar.open(back)
    const code = new URLSearchParams(back.split('?')[1]).get('code') ?? ''
    const state = authorization.searchParams.get('state') ?? ''
    const log = control.log.join('\n')
    for (const secret of [code, state, login, jar.cookies.get(COOKIE) ?? '']) {
      expect(secret.length).toBeGreaterThan(20)
      expect(log).not.toContain(secret)
    }
  })
})

describe('the callback of an issuer', () => {
  test('is accepted once (login replay)', async () => {
    const jar = new CookieJar(control)
    const back = await comeBack(await leave(jar), 'ann')
    const login = jar.cookies.get(LOGIN) ?? ''
    await jar.open(back)
    const again = new CookieJar(control)
    await expectRefused(again, await again.open(back))
    again.cookies.set(LOGIN, login)
    // The issuer accepts each code once, too.
    await expectRefused(again, await again.open(back), 502)
  })

  test('is refused with another state, or none (login CSRF)', async () => {
    for (const change of [
      (query: URLSearchParams) => query.set('state', 'x'.repeat(43)),
      (query: URLSearchParams) => query.delete('state'),
      (query: URLSearchParams) => query.set('state', ''),
    ]) {
      const jar = new CookieJar(control)
      const back = new URL(await comeBack(await leave(jar), 'ann'), control.origin)
      change(back.searchParams)
      await expectRefused(jar, await jar.open(back.pathname + back.search))
    }
  })

  test("is refused with another browser's state (login CSRF)", async () => {
    const eve = new CookieJar(control)
    const planted = await comeBack(await leave(eve), 'eve')
    const victim = new CookieJar(control)
    await expectRefused(victim, await victim.open(planted))
    await leave(victim)
    await expectRefused(victim, await victim.open(planted))
    // The browser that started with it can still complete.
    expect((await eve.open(planted)).status).toBe(303)
  })

  test('is refused with a code of another sign-in (code injection)', async () => {
    const eve = new CookieJar(control)
    const stolen = new URL(await comeBack(await leave(eve), 'eve'), control.origin)
    const victim = new CookieJar(control)
    const back = new URL(await comeBack(await leave(victim), 'ann'), control.origin)
    back.searchParams.set('code', stolen.searchParams.get('code') ?? '')
    await expectRefused(victim, await victim.open(back.pathname + back.search), 502)
  })

  test('is refused with a code of another client', async () => {
    const jar = new CookieJar(control)
    const authorization = await leave(jar)
    authorization.searchParams.set('client_id', issuer.otherClientId)
    await expectRefused(jar, await jar.open(await comeBack(authorization, 'ann')), 502)
  })

  test('is refused without the name of the issuer, or with another (mix-up, RFC 9207)', async () => {
    for (const iss of [undefined, 'https://evil.example', `${issuer.url}/`]) {
      const jar = new CookieJar(control)
      const back = new URL(await comeBack(await leave(jar), 'ann'), control.origin)
      back.searchParams.delete('iss')
      if (iss !== undefined) back.searchParams.set('iss', iss)
      await expectRefused(jar, await jar.open(back.pathname + back.search), 502)
    }
  })

  test('of another issuer sends it neither code nor PKCE verifier (mix-up)', async () => {
    const victim = new CookieJar(control)
    const forwarded = await leave(victim, 'issuer=malicious')
    expect(forwarded.origin).toBe(malicious.url)
    // The malicious issuer sends the browser on to the honest one, with its client and redirect URI.
    const honest = await leave(new CookieJar(control))
    const authorization = new URL(honest)
    for (const name of ['state', 'nonce', 'code_challenge'])
      authorization.searchParams.set(name, forwarded.searchParams.get(name) ?? '')
    const back = await issuer.signIn(authorization, 'ann')
    back.searchParams.delete('iss')
    expect(back.searchParams.has('code')).toBe(true)
    const response = await victim.open(back.pathname + back.search)
    expect(malicious.requested).not.toContain('/token')
    await expectRefused(victim, response)
  })

  test('is refused with a parameter given twice', async () => {
    const jar = new CookieJar(control)
    const back = await comeBack(await leave(jar), 'ann')
    await expectRefused(jar, await jar.open(`${back}&code=other`), 502)
  })

  test('is refused with a cookie that was tampered with, or none', async () => {
    for (const bend of [
      (value: string) => `${value.slice(0, -2)}AA`,
      () => 'x',
      (value: string) => `A${value}`,
    ]) {
      const jar = new CookieJar(control)
      const back = await comeBack(await leave(jar), 'ann')
      jar.cookies.set(LOGIN, bend(jar.cookies.get(LOGIN) ?? ''))
      await expectRefused(jar, await jar.open(back))
    }
    const bare = new CookieJar(control)
    await expectRefused(bare, await bare.open('/signin/callback/test?code=x&state=y'))
  })

  test('is refused at a redirect URI that names no issuer, or another one', async () => {
    for (const path of ['/away', '/TEST', '/test%20', '/none', '']) {
      const jar = new CookieJar(control)
      const { search } = await issuer.signIn(await leave(jar), 'ann')
      const page = await expectRefused(jar, await jar.open(`/signin/callback${path}${search}`))
      expect(page.includes('register the redirect URI of this issuer')).toBe(path === '')
    }
  })

  test('is refused under another of our origins', async () => {
    const jar = new CookieJar(control)
    const back = await comeBack(await leave(jar), 'ann')
    const headers = { host: `127.0.0.1:${control.port}` }
    await expectRefused(jar, await jar.open(back, { headers }))
  })

  test('never adopts an earlier cookie (session fixation)', async () => {
    const jar = await signIn('ann')
    const planted = jar.cookies.get(COOKIE) ?? ''
    const thief = new CookieJar(control)
    thief.cookies.set(COOKIE, planted)
    expect(await thief.statusOfWhoami()).toBe(200)
    await jar.open(await comeBack(await leave(jar), 'ann'))
    expect(jar.cookies.get(COOKIE)).not.toBe(planted)
    expect([await jar.statusOfWhoami(), await thief.statusOfWhoami()]).toEqual([200, 401])
  })
})

describe('an open redirect', () => {
  test.each([
    '//evil.example',
    '/\\evil.example',
    'https:evil.example',
    'https://evil.example/',
    '/%2fevil.example',
    '/%5cevil.example',
    '/.//evil.example',
    '/%09/evil.example',
    '@evil.example',
    '.evil.example',
    '/signin/start?issuer=test',
  ])('to %j redirects to our start page', async (to) => {
    const jar = new CookieJar(control)
    const authorization = await leave(jar, new URLSearchParams({ issuer: 'test', to }).toString())
    const response = await jar.open(await comeBack(authorization, 'ann'))
    expect(response.headers.get('location')).toBe(`${control.origin}/`)
  })
})

describe('the redirect to an issuer', () => {
  test('is not started by a page of another site (login CSRF)', async () => {
    for (const site of ['cross-site', 'same-site']) {
      const jar = new CookieJar(control)
      const response = await jar.open('/signin/start?issuer=test', { headers: { 'sec-fetch-site': site } })
      expect(locationOf(response).href).toBe(`${control.origin}/signin`)
      expect(jar.cookies.size).toBe(0)
    }
    for (const site of ['same-origin', 'none']) {
      const jar = new CookieJar(control)
      const response = await jar.open('/signin/start?issuer=test', { headers: { 'sec-fetch-site': site } })
      expect(locationOf(response).origin).toBe(issuer.url)
    }
  })
})

describe('sign-ins', () => {
  async function list(jar: CookieJar): Promise<{ login: string; current: boolean }[]> {
    const { signIns } = (await (await jar.read('/api/account/sign-ins')).json()) as {
      signIns: { login: string; current: boolean }[]
    }
    return signIns
  }

  test('are listed and ended by their own user only', async () => {
    const [here, there, eve] = [await signIn('bob'), await signIn('bob'), await signIn('eve')]
    const mine = await list(here)
    expect(mine.map(({ current }) => current)).toEqual([true, false])
    expect(JSON.stringify(mine)).not.toContain('sws_')
    const [, other] = mine
    const path = `/api/account/sign-ins/${other?.login ?? ''}`
    expect((await eve.write('DELETE', path)).status).toBe(403)
    const someone = (await list(eve))[0]?.login ?? ''
    expect((await here.write('DELETE', `/api/account/sign-ins/${someone}`)).status).toBe(404)
    expect((await here.write('DELETE', path)).status).toBe(204)
    expect((await here.write('DELETE', path)).status).toBe(404)
    expect([await here.statusOfWhoami(), await there.statusOfWhoami()]).toEqual([200, 401])
    expect(await eve.statusOfWhoami()).toBe(200)
  })

  test('are audited in their account, with start and end', async () => {
    const jar = await signIn('bob')
    const mine = await list(jar)
    const login = mine.find(({ current }) => current)?.login
    await jar.write('POST', '/api/signout')
    const later = await signIn('bob')
    const audit = await (await later.read('/api/audit')).text()
    const rows = (JSON.parse(audit) as { rows: Record<string, unknown>[] }).rows
    const outcomes = rows
      .filter((row) => row['login'] === login)
      .map(({ action, outcome }) => `${String(action)} ${String(outcome)}`)
    expect(outcomes.sort()).toEqual(['signin allowed', 'signout allowed'])
  })

  test('end permanently with a sign-out', async () => {
    const jar = await signIn('ann')
    const cookie = jar.cookies.get(COOKIE) ?? ''
    expect((await jar.write('POST', '/api/signout')).status).toBe(204)
    expect(jar.cookies.has(COOKIE)).toBe(false)
    jar.cookies.set(COOKIE, cookie)
    expect(await jar.statusOfWhoami()).toBe(401)
  })

  test('of a forged account id call no object', async () => {
    const jar = await signIn('ann')
    const cookie = jar.cookies.get(COOKIE) ?? ''
    const objects = (): Promise<number> =>
      control.metric('sandwire_objects_constructed_total{class="account"}')
    const before = await objects()
    for (const account of [`u${'0'.repeat(32)}`, 'nobody', 'local2']) {
      jar.cookies.set(COOKIE, cookie.replace(/^sws_[a-z0-9]+/, `sws_${account}`))
      expect(await jar.statusOfWhoami()).toBe(401)
    }
    expect(await objects()).toBe(before)
  })

  test('of one account are invalid for another', async () => {
    const [ann, eve] = [await signIn('ann'), await signIn('eve')]
    const account = /^sws_([a-z0-9]+)/.exec(ann.cookies.get(COOKIE) ?? '')?.[1] ?? ''
    eve.cookies.set(COOKIE, (eve.cookies.get(COOKIE) ?? '').replace(/^sws_[a-z0-9]+/, `sws_${account}`))
    expect(await eve.statusOfWhoami()).toBe(401)
  })
})

describe('a cookie', () => {
  const strange = (port: number): string[] => [
    'https://evil.example',
    'null',
    `http://localhost.evil.com:${port}`,
    `http://evillocalhost:${port}`,
    `https://localhost:${port}`,
    `http://localhost:${port + 1}`,
    `http://localhost.:${port}`,
    `HTTP://LOCALHOST:${port}`,
    `http://localhost:${port}@evil.com`,
    `http://localhost:${port}/`,
  ]

  test('authorizes writes only with an exact origin of ours (threat T1)', async () => {
    const jar = await signIn('ann')
    for (const origin of [undefined, ...strange(control.port)]) {
      const headers = { 'sec-fetch-site': 'same-origin', ...(origin === undefined ? {} : { origin }) }
      const response = await jar.open('/api/signout', { method: 'POST', headers })
      expect([origin, response.status]).toEqual([origin, 403])
    }
    expect(await jar.statusOfWhoami()).toBe(200)
  })

  test('authorizes reads only for a page of ours (threat T1)', async () => {
    const jar = await signIn('ann')
    for (const site of [undefined, 'cross-site', 'same-site', 'none', 'Same-Origin']) {
      const headers = site === undefined ? {} : { 'sec-fetch-site': site }
      expect([site, (await jar.open('/api/account/sign-ins', { headers })).status]).toEqual([site, 403])
    }
    for (const origin of strange(control.port)) {
      const headers = { origin, 'sec-fetch-site': 'same-origin' }
      expect([origin, (await jar.open('/api/account/sign-ins', { headers })).status]).toEqual([origin, 403])
    }
  })
})

describe('an issuer that requires the resource parameter', () => {
  test('gets the resource when a sign-in starts and when its code is exchanged (RFC 8707)', async () => {
    await using strict = await startIssuer({ isStrict: true })
    const requestParameters = { resource: strict.audience }
    await using server = await startControl({
      runner: sandboxes,
      config: { issuers: [strict.configFor({ requestParameters })] },
    })
    const jar = new CookieJar(server)
    const left = await jar.open('/signin/start?issuer=test')
    const back = await strict.signIn(left.headers.get('location') ?? '', 'ann')
    expect((await jar.open(back.pathname + back.search)).status).toBe(303)
    const whoami: unknown = await (await jar.read('/api/whoami')).json()
    expect(fieldOf(whoami, 'scopes')).toEqual(['connect', 'exec', 'admin'])
  })
})

describe('a server that has no local identity', () => {
  test('refuses sign-in links of the host', async () => {
    await using open = await startControl({
      runner: sandboxes,
      config: { mode: 'open', localTokenSha256: undefined, issuers: [issuer.configFor()] },
    })
    const code = 'c'.repeat(32)
    open.host.codes.add(code)
    const jar = new CookieJar(open)
    expect((await jar.write('POST', '/api/signin', { code })).status).toBe(401)
    expect(jar.cookies.size).toBe(0)
    expect(open.host.codes.has(code)).toBe(true)
  })
})

describe('a new sign-in in the same browser', () => {
  test('ends the previous one, of any account', async () => {
    const jar = await signIn('bob')
    const kept = new CookieJar(control)
    kept.cookies.set(COOKIE, jar.cookies.get(COOKIE) ?? '')
    const elsewhere = await signIn('bob')
    await jar.open(await comeBack(await leave(jar), 'eve'))
    expect([await jar.statusOfWhoami(), await kept.statusOfWhoami()]).toEqual([200, 401])
    expect(await elsewhere.statusOfWhoami()).toBe(200)
  })

  test('ends it also when the browser omits its cookie in the callback', async () => {
    const jar = await signIn('bob')
    const kept = jar.cookies.get(COOKIE) ?? ''
    const issuerPage = await leave(jar)
    jar.cookies.delete(COOKIE)
    await jar.open(await comeBack(issuerPage, 'eve'))
    const old = new CookieJar(control)
    old.cookies.set(COOKIE, kept)
    expect([await jar.statusOfWhoami(), await old.statusOfWhoami()]).toEqual([200, 401])
  })

  test('calls no object for a cookie of a forged account id', async () => {
    const accounts = () => control.metric('sandwire_objects_constructed_total{class="account"}')
    await signIn('eve')
    const before = await accounts()
    const jar = new CookieJar(control)
    jar.cookies.set(COOKIE, `sws_u${'0'.repeat(32)}.${'x'.repeat(43)}`)
    await jar.open(await comeBack(await leave(jar), 'eve'))
    expect(await jar.statusOfWhoami()).toBe(200)
    expect(await accounts()).toBe(before)
  })
})
