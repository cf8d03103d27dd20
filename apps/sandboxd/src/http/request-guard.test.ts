import { expect, test } from 'bun:test'
import { CLOCK_SKEW_MS, type InternalClaims } from '@sandwire/internal-api'
import { BEARER } from '../caller.ts'
import { ReplayGuard, RequestGuard } from './request-guard.ts'

const guard = new RequestGuard({
  credential: { kind: 'secret', secret: 'correct-horse-battery' },
  origins: ['https://app.example'],
  hosts: new Set(['127.0.0.1:8080']),
  wallClock: () => 0,
})
const headers = (init: Record<string, string>): Headers => new Headers({ host: '127.0.0.1:8080', ...init })

test('checkSource accepts the listening address, with a listed origin or none', () => {
  expect(guard.checkSource(headers({}))).toBeUndefined()
  expect(guard.checkSource(headers({ origin: 'https://app.example' }))).toBeUndefined()
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
  expect(guard.checkSource(headers({ origin }))?.code).toBe('origin_refused')
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
  expect(guard.checkSource(headers({ host }))?.code).toBe('host_refused')
})

test('checkSource refuses a request without a host', () => {
  expect(guard.checkSource(new Headers())?.code).toBe('host_refused')
})

async function authenticate(authorization: string | undefined): Promise<unknown> {
  const request = new Request('http://127.0.0.1:8080/', {
    headers: headers(authorization === undefined ? {} : { authorization }),
  })
  return guard.authenticate(request, new URL(request.url))
}

test('authenticate accepts only the secret', async () => {
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

const codeOf = (code: string): unknown => expect.objectContaining({ code })
const NOW = 1_800_000_000_000
const claims = (changes: Partial<InternalClaims> = {}): InternalClaims => ({
  method: 'POST',
  path: '/sessions',
  sandbox: '0123456789abcdefghjkmnpqrstvwxyz',
  identity: 'local:1',
  authority: 'driver',
  exec: true,
  requestId: 'r-1',
  issuedMs: NOW,
  expiresMs: NOW + 30_000,
  ...changes,
})

test('(threat T11) a token is accepted once', () => {
  const replays = new ReplayGuard()
  replays.use(claims(), NOW)
  expect(() => replays.use(claims(), NOW + 1)).toThrow(codeOf('unauthorized'))
  expect(() => replays.use(claims({ expiresMs: NOW + 31_000 }), NOW + 1)).toThrow(codeOf('unauthorized'))
  for (const other of [
    { requestId: 'r-2' },
    { issuedMs: NOW + 1 },
    { path: '/x' },
    { method: 'PUT' },
  ] as const)
    expect(() => replays.use(claims(other), NOW + 1)).not.toThrow()
})

test('a full replay memory drops expired tokens, and refuses requests while none has expired', () => {
  const replays = new ReplayGuard(2)
  replays.use(claims({ requestId: 'a', expiresMs: NOW + 1 }), NOW)
  replays.use(claims({ requestId: 'b' }), NOW)
  expect(() => replays.use(claims({ requestId: 'c' }), NOW + 1 + CLOCK_SKEW_MS)).toThrow(
    codeOf('rate_limited'),
  )
  replays.use(claims({ requestId: 'c' }), NOW + 2 + CLOCK_SKEW_MS)
  expect(replays.size).toBe(2)
  expect(() => replays.use(claims({ requestId: 'b' }), NOW + 3)).toThrow(codeOf('unauthorized'))
})
