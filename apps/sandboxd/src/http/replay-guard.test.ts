import { expect, test } from 'bun:test'
import { CLOCK_SKEW_MS, type InternalClaims } from '@sandwire/internal-api'
import { ReplayGuard } from './replay-guard.ts'

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

test('(threat T11) a token is used once', () => {
  const guard = new ReplayGuard()
  guard.use(claims(), NOW)
  expect(() => guard.use(claims(), NOW + 1)).toThrow(/used before/)
  expect(() => guard.use(claims({ expiresMs: NOW + 31_000 }), NOW + 1)).toThrow(/used before/)
  for (const other of [
    { requestId: 'r-2' },
    { issuedMs: NOW + 1 },
    { path: '/x' },
    { method: 'PUT' },
  ] as const)
    expect(() => guard.use(claims(other), NOW + 1)).not.toThrow()
})

test('a full memory forgets what has expired and refuses rather than forget more', () => {
  const guard = new ReplayGuard(2)
  guard.use(claims({ requestId: 'a', expiresMs: NOW + 1 }), NOW)
  guard.use(claims({ requestId: 'b' }), NOW)
  expect(() => guard.use(claims({ requestId: 'c' }), NOW + 1 + CLOCK_SKEW_MS)).toThrow(/more requests/)
  guard.use(claims({ requestId: 'c' }), NOW + 2 + CLOCK_SKEW_MS)
  expect(guard.size).toBe(2)
  expect(() => guard.use(claims({ requestId: 'b' }), NOW + 3)).toThrow(/used before/)
})
