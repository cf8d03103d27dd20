import { describe, expect, test } from 'bun:test'
import { readUpgrade } from '../src/http/upgrade.ts'
import { Hono } from 'hono'
import { checkRequestSource, checkSource } from '../src/http/source-check.ts'

const settings = {
  hosts: ['app.example', 'localhost:8080'],
  publicOrigins: ['https://app.example'],
  embedOrigins: ['https://good.example', 'http://localhost:5199'],
  conversationOrigins: ['https://chat.example'],
}
const check = (headers: Record<string, string>, path = '/') =>
  checkSource(new Request(`http://app.example${path}`, { headers }), settings)?.code

describe('checkSource', () => {
  test('accepts our own pages and programs', () => {
    expect(check({ host: 'app.example' })).toBeUndefined()
    expect(check({ host: 'APP.example', origin: 'https://app.example' })).toBeUndefined()
  })

  test.each([
    'https://evil.example',
    'null',
    '',
    'https://app.example.evil.com',
    'https://evilapp.example',
    'http://app.example',
    'https://app.example:444',
    'https://app.example.',
    'HTTPS://APP.EXAMPLE',
    'https://app.example@evil.com',
    'https://app.example, https://app.example',
    'http://localhost:9999',
    'https://app.example/',
  ])('(threat T1) refuses origin %j', (origin) => {
    expect(check({ host: 'app.example', origin })).toBe('origin_refused')
  })

  test.each([
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.nip.io',
    '[::1]:9999',
    'localhost:80',
    'localhost',
    'app.example, app.example',
    'app.example.',
    '',
  ])('(threat T10) refuses host %j', (host) => {
    expect(check({ host })).toBe('host_refused')
  })

  test('(threat T10) refuses a request without a host, whatever else it claims', () => {
    expect(check({ 'x-forwarded-host': 'app.example', 'mf-original-url': 'https://app.example/' })).toBe(
      'host_refused',
    )
  })
})

describe('checkSource of a page of a listed origin', () => {
  const upgrade = { host: 'app.example', connection: 'Upgrade', upgrade: 'websocket' }
  const offer = { 'sec-websocket-protocol': 'sandwire.v1, sandwire.ticket.x' }
  const open = (changes: Record<string, string> = {}, path = '/attach?cmd=cat') =>
    check({ ...upgrade, ...offer, origin: 'https://good.example', ...changes }, path)

  test('accepts an upgrade with a ticket', () => {
    expect(open()).toBeUndefined()
    expect(open({ origin: 'http://localhost:5199' }, '/terminal/a.b')).toBeUndefined()
  })

  test.each([
    { 'sec-websocket-protocol': 'sandwire.v1' },
    { 'sec-websocket-protocol': '' },
    { 'sec-websocket-protocol': 'sandwire.v1, xsandwire.ticket.x' },
    { 'sec-websocket-protocol': 'sandwire.v1', authorization: 'Bearer t' },
    { 'sec-websocket-protocol': 'sandwire.v1', cookie: '__Host-sandwire=x' },
    { upgrade: 'h2c' },
    { connection: 'close' },
  ])('(threat T1) refuses it without an upgrade that offers one: %j', (changes) => {
    expect(open(changes)).toBe('origin_refused')
  })

  test.each([
    '/',
    '/api/tickets',
    '/api/sandboxes',
    '/ws/pty',
    '/attach/',
    '/attach/x',
    '/terminal/',
    '/terminal/a/b',
    '/%61ttach',
    '//attach',
    '/x/attach',
    '/attachx',
    '/metrics',
    '/?/attach',
  ])('(threat T1) refuses it at %s, with a ticket too', (path) => {
    expect(open({}, path)).toBe('origin_refused')
  })

  test.each([
    'https://other.example',
    'null',
    '',
    'https://good.example.evil.example',
    'https://evilgood.example',
    'https://evil.good.example',
    'https://good.example@evil.example',
    'https://good.example.',
    'https://good.example:8443',
    'https://good.example:443',
    'https://Good.example',
    'HTTPS://good.example',
    'http://good.example',
    'https://good.example/',
    'https://good.example, https://good.example',
    'http://localhost:5198',
    'http://127.0.0.1:5199',
    'https://localhost:5199',
  ])('(threat T1) refuses origin %j, with a ticket too', (origin) => {
    expect(open({ origin })).toBe('origin_refused')
  })

  test('(threat T10) refuses it under another host name of ours', () => {
    expect(open({ host: 'evil.example' })).toBe('host_refused')
  })
})

describe('a token in the URL (threat T2)', () => {
  interface Case {
    readonly tokenInUrl: boolean
    readonly headers: Readonly<Record<string, string>>
    readonly path: string
  }
  const upgrade = { host: 'app.example', connection: 'upgrade', upgrade: 'websocket' }

  /** The Authorization header that routes see, or the error. */
  async function authorizationOf(
    query: string,
    { tokenInUrl = true, headers = upgrade, path = '/attach' }: Partial<Case> = {},
  ): Promise<string> {
    const app = new Hono()
    app.use(checkRequestSource({ ...settings, tokenInUrl }))
    app.get('*', ({ req }) => new Response(`${req.header('authorization')} ${new URL(req.raw.url).search}`))
    app.onError((error) => new Response(error.message))
    const url = `http://app.example${path}?${query}`
    return (await app.request(new Request(url, { headers }))).text()
  }
  const refusal = (problem: string): string => `Cannot use parameter "token": ${problem}`

  test('authorizes an upgrade where that is enabled, and is removed from the URL', async () => {
    expect(await authorizationOf('cmd=cat&token=abc')).toBe('Bearer abc ?cmd=cat')
  })

  test.each([
    ['send the token in a header', 'token=abc', { tokenInUrl: false }],
    ['given twice', 'token=abc&token=def', {}],
    ['given twice', 'token=abc&token=abc', {}],
    ['not a token', 'token=', {}],
    ['not a token', 'token=a%20b', {}],
    ['not a token', `token=${'x'.repeat(8 * 1024 + 1)}`, {}],
    ['only allowed when attaching', 'token=abc', { path: '/api/sandboxes' }],
    ['only allowed when attaching', 'token=abc', { headers: { host: 'app.example' } }],
    ['another credential was sent', 'token=abc', { headers: { ...upgrade, authorization: 'Bearer x' } }],
    [
      'another credential was sent',
      'token=abc',
      { headers: { ...upgrade, 'sec-websocket-protocol': 'sandwire.v1, sandwire.ticket.x' } },
    ],
  ])('is refused: %s (%j)', async (problem, query, options) => {
    expect(await authorizationOf(query, options)).toBe(refusal(problem))
  })
})

describe('readUpgrade', () => {
  const good = {
    connection: 'keep-alive, Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  }
  const read = (headers: Record<string, string>) => readUpgrade(new Request('http://x/', { headers }))

  test('recognizes a handshake and its dialect', () => {
    expect(read(good)).toEqual({ dialect: 'plain', isUpgrade: true, isWellFormed: true })
    expect(read({ ...good, 'sec-websocket-protocol': 'other, sandwire.v1' }).dialect).toBe('v1')
  })

  test.each([
    { ...good, 'sec-websocket-version': '777' },
    { ...good, 'sec-websocket-key': 'short' },
    { ...good, 'content-length': '5' },
    { ...good, 'transfer-encoding': 'chunked' },
  ])('(threat T8) reports a malformed handshake %#', (headers) => {
    expect(read(headers).isWellFormed).toBe(false)
  })

  test.each([
    { ...good, upgrade: 'h2c, websocket' },
    { ...good, upgrade: 'websocket, h2c' },
    { ...good, connection: 'close' },
  ])('(threat T8) recognizes no other request as a handshake %#', (headers) => {
    expect(read(headers).isUpgrade).toBe(false)
  })
})
