import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { RawHandshake } from '@sandwire/testing'
import { CookieJar } from './support/cookie-jar.ts'
import { type RunningControl, startControl, TOKEN } from './support/control.ts'
import { refusalOf, upgrade } from './support/handshake.ts'
import { codeIn, ApiClient, textIn, UNLIMITED } from './support/api-client.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'

const EMBEDDED = 'https://good.example'
const OTHER = 'https://other.example'

let sandboxes: FakeSandboxes
let control: RunningControl
let owner: ApiClient
beforeAll(async () => {
  sandboxes = new FakeSandboxes()
  control = await startControl({
    runner: sandboxes,
    config: { limits: UNLIMITED, embedOrigins: [EMBEDDED, 'http://localhost:5199'], tokenInUrl: true },
  })
  owner = new ApiClient(control, TOKEN)
  expect((await owner.post('/api/sandboxes', { name: 'dev' })).status).toBe(201)
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

/** Requests a ticket as the server of a page does: with a bearer token and without an Origin header. */
async function ticketFor(origin?: string): Promise<string> {
  const reply = await owner.post('/api/tickets', { sandbox: 'dev', ...(origin !== undefined && { origin }) })
  expect(reply.status).toBe(201)
  return textIn(reply, 'ticket')
}

async function outcomeOf(handshake: RawHandshake): Promise<string> {
  if (handshake.kind !== 'open') return refusalOf(handshake)
  const { payload } = await handshake.socket.nextFrame()
  handshake.socket.reset()
  return new TextDecoder().decode(payload).startsWith('session ') ? 'open' : 'error frame'
}

/** An upgrade with the headers that a browser adds. */
async function open(
  origin: string,
  {
    ticket,
    path = '/attach?cmd=cat',
    headers = [] as readonly (readonly [string, string])[],
  }: {
    readonly ticket?: string
    readonly path?: string
    readonly headers?: readonly (readonly [string, string])[]
  } = {},
): Promise<string> {
  const offers = ticket === undefined ? [] : [`sandwire.ticket.${ticket}`]
  const handshake = await upgrade(control, path, {
    subprotocols: ['sandwire.v1', ...offers],
    headers: [['Origin', origin], ...headers],
  })
  return outcomeOf(handshake)
}

/** A signed-in browser, which sends its cookies from pages of the same site. */
async function signIn(): Promise<CookieJar> {
  const code = crypto.randomUUID()
  control.host.codes.add(code)
  const jar = new CookieJar(control)
  expect((await jar.write('POST', '/api/signin', { code })).status).toBe(204)
  return jar
}

const cookieOf = ({ cookies }: CookieJar) =>
  ['Cookie', [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')] as const

describe('a page of a listed origin', () => {
  test('opens a terminal once with a ticket that its server requested', async () => {
    const ticket = await ticketFor(EMBEDDED)
    expect(await open(EMBEDDED, { ticket })).toBe('open')
    expect(await open(EMBEDDED, { ticket })).toBe('401 unauthorized')
  })

  test('joins only the session that the ticket is for (threat T4)', async () => {
    const handshake = await upgrade(control, '/attach?sandbox=dev&cmd=cat', { subprotocols: ['sandwire.v1'] })
    if (handshake.kind !== 'open') throw new Error('Expected a socket')
    await using socket = handshake.socket
    const session = new TextDecoder().decode((await socket.nextFrame()).payload).replace('session ', '')
    const ask = async () =>
      textIn(await owner.post('/api/tickets', { session, origin: EMBEDDED, role: 'viewer' }), 'ticket')
    expect(await open(EMBEDDED, { ticket: await ask(), path: `/terminal/${session}` })).toBe('open')
    expect(await open(EMBEDDED, { ticket: await ask(), path: '/attach?sandbox=dev' })).toBe('error frame')
  })

  test('is refused without a ticket, whatever else it sends (threat T1)', async () => {
    const jar = await signIn()
    const refused = '403 origin_refused'
    expect(await open(EMBEDDED)).toBe(refused)
    expect(await open(EMBEDDED, { headers: [cookieOf(jar)] })).toBe(refused)
    expect(await open(EMBEDDED, { headers: [['Authorization', `Bearer ${TOKEN}`]] })).toBe(refused)
    expect(await open(EMBEDDED, { path: `/attach?cmd=cat&token=${TOKEN}` })).toBe(refused)
    // The same credentials are valid from our own origin.
    expect(await open(control.origin, { headers: [['Authorization', `Bearer ${TOKEN}`]] })).toBe('open')
    expect(await jar.statusOfWhoami()).toBe(200)
  })

  test('is authenticated by its ticket, not by a cookie (threat T3)', async () => {
    const cookie = cookieOf(await signIn())
    const ticket = await ticketFor(EMBEDDED)
    expect(await open(EMBEDDED, { ticket: `${ticket.slice(0, -1)}!`, headers: [cookie] })).toBe(
      '401 unauthorized',
    )
    expect(await open(EMBEDDED, { ticket, headers: [cookie] })).toBe('open')
  })

  test('is refused with a ticket and another credential', async () => {
    const ticket = await ticketFor(EMBEDDED)
    expect(await open(EMBEDDED, { ticket, headers: [['Authorization', `Bearer ${TOKEN}`]] })).toBe(
      '401 unauthorized',
    )
    expect(await open(EMBEDDED, { ticket, path: `/attach?cmd=cat&token=${TOKEN}` })).toBe('400 bad_request')
    expect(await open(EMBEDDED, { ticket })).toBe('open')
  })

  test('cannot use the API and gets no CORS headers (threat T1)', async () => {
    const jar = await signIn()
    for (const path of ['/api/whoami', '/api/sandboxes', '/attach', '/', '/health']) {
      const response = await jar.open(path, { headers: { origin: EMBEDDED } })
      expect([path, response.status]).toEqual([path, 403])
      expect([...response.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
    }
    const requests = await owner.request('POST', '/api/tickets', { sandbox: 'dev' }, { origin: EMBEDDED })
    expect(codeIn(requests)).toBe('403 origin_refused')
  })

  test('cannot use a ticket for our own origin, another origin or no origin (threat T1)', async () => {
    for (const origin of [control.origin, 'http://localhost:5199', undefined])
      expect([origin, await open(EMBEDDED, { ticket: await ticketFor(origin) })]).toEqual([
        origin,
        '401 unauthorized',
      ])
  })
})

describe('a page of any other origin', () => {
  test.each([
    OTHER,
    'null',
    'https://good.example.evil.example',
    'https://evilgood.example',
    'https://good.example.',
    'https://good.example:8443',
    'https://Good.example',
    'http://good.example',
    'http://localhost:5198',
  ])('is refused with a ticket that is valid elsewhere: %s (threat T1)', async (origin) => {
    const ticket = await ticketFor(EMBEDDED)
    expect(await open(origin, { ticket })).toBe('403 origin_refused')
    // The refused ticket was not used up.
    expect(await open(EMBEDDED, { ticket })).toBe('open')
  })
})

describe('a ticket for an origin', () => {
  test('of ours is valid there when a program requested it', async () => {
    expect(await open(control.origin, { ticket: await ticketFor(control.origin) })).toBe('open')
    expect(await open(control.origin, { ticket: await ticketFor(EMBEDDED) })).toBe('401 unauthorized')
  })

  test.each([
    OTHER,
    'https://good.example.evil.example',
    'https://good.example:8443',
    'http://good.example',
    'https://good.example.',
  ])('that is not listed is not issued: %s (threat T1)', async (origin) => {
    const reply = await owner.post('/api/tickets', { sandbox: 'dev', origin })
    expect(codeIn(reply)).toBe('403 origin_refused')
    expect(JSON.stringify(reply.body)).toContain('origin')
  })

  test.each(['null', '', '*', 'https://good.example/', 'https://Good.example', 'good.example', 5, null])(
    'needs a serialized origin: %j',
    async (origin) => {
      expect(codeIn(await owner.post('/api/tickets', { sandbox: 'dev', origin }))).toBe('400 bad_request')
    },
  )

  test('is issued to a page for its own origin only (threat T1)', async () => {
    const ask = (origin: string) =>
      owner.request('POST', '/api/tickets', { sandbox: 'dev', origin }, { origin: control.origin })
    expect(codeIn(await ask(EMBEDDED))).toBe('403 origin_refused')
    const own = await ask(control.origin)
    expect(own.status).toBe(201)
    expect(await open(control.origin, { ticket: textIn(own, 'ticket') })).toBe('open')
  })

  test('is not issued for a cookie without an origin (threat T3)', async () => {
    const jar = await signIn()
    const response = await jar.open('/api/tickets', {
      method: 'POST',
      json: { sandbox: 'dev', origin: EMBEDDED },
    })
    expect(response.status).toBe(403)
  })
})
