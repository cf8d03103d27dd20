import { describe, expect, test } from 'bun:test'
import { readUpgrade } from '../src/http/upgrade.ts'
import { checkSource } from '../src/http/source-check.ts'

const settings = {
  hosts: ['app.example', 'localhost:8080'],
  publicOrigins: ['https://app.example'],
  embedOrigins: ['https://good.example', 'http://localhost:5199'],
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
