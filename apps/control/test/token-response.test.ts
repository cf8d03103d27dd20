import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { startIssuer, type TestIssuer } from '@sandwire/testing/issuer'
import { type RunningControl, startControl } from './support/control.ts'
import { CookieJar } from './support/cookie-jar.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'

type Tokens = Record<string, unknown>

/** Proxies the issuer's token endpoint and changes its responses. */
let bend: (tokens: Tokens) => Response | Promise<Response>
/** Responses of the issuer by code, so that a code can be used twice. */
const answered = new Map<string, Tokens>()

let sandboxes: FakeSandboxes
let issuer: TestIssuer
let control: RunningControl
let endpoint: Bun.Server<undefined>
beforeAll(async () => {
  sandboxes = new FakeSandboxes()
  issuer = await startIssuer()
  endpoint = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: async (request) => {
      const form = new URLSearchParams(await request.text())
      const code = form.get('code') ?? ''
      const known = answered.get(code)
      const tokens =
        known ??
        ((await (await fetch(`${issuer.url}/token`, { method: 'POST', body: form })).json()) as Tokens)
      answered.set(code, tokens)
      return new URL(request.url).pathname === '/elsewhere' ? Response.json(tokens) : bend(tokens)
    },
  })
  const token = `http://127.0.0.1:${endpoint.port}/token`
  control = await startControl({
    runner: sandboxes,
    config: { issuers: [{ ...issuer.configFor(), endpoints: { token } }] },
  })
})
beforeEach(() => {
  bend = (tokens) => Response.json(tokens)
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await endpoint.stop(true)
  await issuer[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

async function comeBack(jar: CookieJar, client = 'ann'): Promise<string> {
  const away = (await jar.open('/signin/start?issuer=test')).headers.get('location') ?? ''
  const { pathname, search } = await issuer.signIn(away, client)
  return pathname + search
}

async function statusAfter(change: typeof bend): Promise<number> {
  bend = change
  const jar = new CookieJar(control)
  const { status } = await jar.open(await comeBack(jar))
  expect(await jar.statusOfWhoami()).toBe(status === 303 ? 200 : 401)
  return status
}

test('a correct response of the issuer signs the user in', async () => {
  expect(await statusAfter((tokens) => Response.json(tokens))).toBe(303)
})

test('a sign-in completes once, even if the issuer accepts a code twice (login replay)', async () => {
  const jar = new CookieJar(control)
  const back = await comeBack(jar)
  const stolen = new CookieJar(control)
  for (const [name, value] of jar.cookies) stolen.cookies.set(name, value)
  expect((await jar.open(back)).status).toBe(303)
  expect((await stolen.open(back)).status).toBe(400)
  expect(await stolen.statusOfWhoami()).toBe(401)
  expect(await jar.statusOfWhoami()).toBe(200)
})

test('the ID token of another sign-in is refused (token substitution)', async () => {
  let first: Tokens | undefined
  const jar = new CookieJar(control)
  bend = (tokens) => {
    first = tokens
    return Response.json(tokens)
  }
  await jar.open(await comeBack(jar, 'eve'))
  expect(typeof first?.['id_token']).toBe('string')
  expect(await statusAfter((tokens) => Response.json({ ...tokens, id_token: first?.['id_token'] }))).toBe(502)
})

test('an ID token with an invalid signature is refused (threat T34)', async () => {
  const status = await statusAfter((tokens) => {
    const [head = '', body = '', signature = ''] = String(tokens['id_token']).split('.')
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as Tokens
    const other = Buffer.from(JSON.stringify({ ...claims, sub: 'bob' })).toString('base64url')
    return Response.json({ ...tokens, id_token: `${head}.${other}.${signature}` })
  })
  expect(status).toBe(502)
})

test('an access token instead of the ID token is refused', async () => {
  expect(await statusAfter((tokens) => Response.json({ ...tokens, id_token: tokens['access_token'] }))).toBe(
    502,
  )
})

test.each<[string, typeof bend]>([
  ['a response without an ID token', (tokens) => Response.json({ ...tokens, id_token: undefined })],
  ['an error', () => Response.json({ error: 'invalid_grant' }, { status: 400 })],
  ['a response that is not JSON', () => new Response('<h1>no</h1>')],
  ['a redirect', () => new Response(null, { status: 307, headers: { location: '/elsewhere' } })],
])('%s is refused', async (_, change) => expect(await statusAfter(change)).toBe(502))

test('a response that is too large is not read', async () => {
  expect(await statusAfter(() => new Response('x'.repeat(128 * 1024)))).toBe(503)
})
