import { beforeAll, describe, expect, test } from 'bun:test'
import { rejectionOf } from '@sandwire/testing'
import {
  exportPublicKey,
  importPublicKey,
  type InternalClaims,
  signInternalToken,
  verifyInternalToken,
} from './internal-token.ts'

const SANDBOX = '0123456789abcdefghjkmnpqrstvwxyz'
const NOW = 1_800_000_000_000
const claims: InternalClaims = {
  method: 'GET',
  path: '/attach?cmd=bash&arg=%C3%A9',
  sandbox: SANDBOX,
  identity: 'local:1',
  authority: 'driver',
  exec: true,
  session: `${SANDBOX}.0123456789abcdefghjkmnpqrs`,
  requestId: 'r-1',
  issuedMs: NOW,
  expiresMs: NOW + 30_000,
}
const facts = { method: 'GET', path: claims.path, sandbox: SANDBOX, nowMs: NOW + 1_000 }

let keys: CryptoKeyPair
beforeAll(async () => {
  keys = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
})

const sign = (changes: Partial<InternalClaims> = {}): Promise<string> =>
  signInternalToken(keys.privateKey, { ...claims, ...changes })

describe('an internal token', () => {
  test('is accepted for its own request with an exported and imported key', async () => {
    const key = await importPublicKey(await exportPublicKey(keys.publicKey))
    expect(await verifyInternalToken(key, await sign(), facts)).toEqual(claims)
  })

  const refusals: readonly [string, Partial<InternalClaims>, Partial<typeof facts>, RegExp][] = [
    ['another method', {}, { method: 'POST' }, /another request/],
    ['another path', {}, { path: '/attach?cmd=sh' }, /another request/],
    ['another sandbox', {}, { sandbox: SANDBOX.replace('0', '1') }, /another sandbox/],
    ['a sandbox id of another spelling', { sandbox: 'dev' }, { sandbox: 'dev' }, /another sandbox/],
    ['a time after its end', {}, { nowMs: NOW + 36_000 }, /expired/],
    ['a time before its start', {}, { nowMs: NOW - 6_000 }, /future/],
    ['a life over a minute', { expiresMs: NOW + 60_001 }, {}, /too long/],
    ['a life of nothing', { expiresMs: NOW }, {}, /too long/],
  ]
  for (const [what, changes, otherFacts, why] of refusals) {
    test(`is refused for ${what}`, async () => {
      const token = await sign(changes)
      const error = await rejectionOf(verifyInternalToken(keys.publicKey, token, { ...facts, ...otherFacts }))
      expect(error).toMatchObject({ code: 'unauthorized' })
      expect(String(error)).toMatch(why)
    })
  }

  test('is accepted for a long path, and is no longer than for a short one', async () => {
    const path = `/attach?cmd=sh&arg=${'x'.repeat(100_000)}`
    const token = await sign({ path })
    expect(token.length).toBeLessThan(1_000)
    expect(await verifyInternalToken(keys.publicKey, token, { ...facts, path })).toMatchObject({
      sandbox: SANDBOX,
    })
    for (const other of [`${path}x`, path.slice(0, -1), path.replace('sh', 'sH')]) {
      const error = await rejectionOf(verifyInternalToken(keys.publicKey, token, { ...facts, path: other }))
      expect(String(error)).toMatch(/another request/)
    }
  })

  test('is refused when another key signed it', async () => {
    const other = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
    const token = await signInternalToken(other.privateKey, claims)
    expect(await rejectionOf(verifyInternalToken(keys.publicKey, token, facts))).toMatchObject({
      code: 'unauthorized',
    })
  })

  test('is refused when any one character is changed, added or removed', async () => {
    const token = await sign()
    for (let at = 0; at < token.length; at += 7) {
      const other = token[at] === 'A' ? 'B' : 'A'
      for (const bent of [
        token.slice(0, at) + other + token.slice(at + 1),
        token.slice(0, at) + token.slice(at + 1),
        `${token.slice(0, at)}=${token.slice(at)}`,
      ])
        expect(await rejectionOf(verifyInternalToken(keys.publicKey, bent, facts))).toMatchObject({
          code: 'unauthorized',
        })
    }
  })

  test('is refused with an unknown claim', async () => {
    const token = await sign({ ...claims, admin: true } as InternalClaims)
    expect(String(await rejectionOf(verifyInternalToken(keys.publicKey, token, facts)))).toMatch(/not know/)
  })
})
