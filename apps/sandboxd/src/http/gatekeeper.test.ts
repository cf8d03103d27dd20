import { expect, test } from 'bun:test'
import { BEARER } from '../caller.ts'
import { Gatekeeper } from './gatekeeper.ts'

const gate = new Gatekeeper({
  credential: { kind: 'secret', secret: 'correct-horse-battery' },
  origins: ['https://app.example'],
  hosts: new Set(['127.0.0.1:8080']),
  wallClock: () => 0,
})
const headers = (init: Record<string, string>): Headers => new Headers({ host: '127.0.0.1:8080', ...init })

test('checkSource lets the listening address in, with a listed origin or none', () => {
  expect(gate.checkSource(headers({}))).toBeUndefined()
  expect(gate.checkSource(headers({ origin: 'https://app.example' }))).toBeUndefined()
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
  'https://app.example, https://evil.example',
  'http://127.0.0.1:8080',
])('checkSource refuses origin %j', (origin) => {
  expect(gate.checkSource(headers({ origin }))?.code).toBe('origin_refused')
})

test.each([
  'evil.example',
  'localhost.evil.example',
  '127.0.0.1.nip.io',
  '[::1]:9999',
  '127.0.0.1:80',
  '127.0.0.1',
  '127.0.0.1:8080, evil',
  '',
])('checkSource refuses host %j', (host) => {
  expect(gate.checkSource(headers({ host }))?.code).toBe('host_refused')
})

test('checkSource refuses a request without a host', () => {
  expect(gate.checkSource(new Headers())?.code).toBe('host_refused')
})

async function authenticate(authorization: string | undefined): Promise<unknown> {
  const request = new Request('http://127.0.0.1:8080/', {
    headers: headers(authorization === undefined ? {} : { authorization }),
  })
  return gate.authenticate(request, new URL(request.url))
}

test('authenticate takes the secret and nothing else', async () => {
  expect(await authenticate('Bearer correct-horse-battery')).toBe(BEARER)
  for (const authorization of [
    undefined,
    '',
    'Bearer',
    'Bearer ',
    'Bearer wrong',
    'Basic correct-horse-battery',
    'correct-horse-battery',
    'Bearer correct-horse-battery x',
    'Bearer correct-horse-batter',
  ]) {
    expect(await authenticate(authorization)).toMatchObject({ code: 'unauthorized' })
  }
})
