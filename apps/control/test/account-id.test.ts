import { describe, expect, test } from 'bun:test'
import { isSandboxId } from '@sandwire/internal-api'
import { isAccountId, openAccountIds } from '../src/auth/account-id.ts'

const KEY = new Uint8Array(32).fill(7)
const ISSUER = 'https://id.example'

describe('an account id', () => {
  test('is the same for one subject of one issuer', async () => {
    const id = await (await openAccountIds(KEY)).of('oidc', ISSUER, 'ada')
    expect(id).toBe(await (await openAccountIds(KEY)).of('oidc', ISSUER, 'ada'))
    expect(isAccountId(id)).toBe(true)
    expect(isSandboxId(id)).toBe(false)
  })

  test('does not reveal its subject and depends on the key', async () => {
    const ids = await openAccountIds(KEY)
    const id = await ids.of('oidc', ISSUER, 'ada@example.com')
    expect(id).toMatch(/^u[0-9a-z]{32}$/)
    expect(id).not.toContain('ada')
    expect(await (await openAccountIds(KEY.with(0, 8))).of('oidc', ISSUER, 'ada@example.com')).not.toBe(id)
  })

  test('is unique per issuer and subject, whatever characters they contain', async () => {
    const ids = await openAccountIds(KEY)
    const parts = [
      ['oidc', ISSUER, 'ada'],
      ['oidc', `${ISSUER}ada`, ''],
      ['oidc', '', `${ISSUER}ada`],
      ['oidc', `${ISSUER}/`, 'ada'],
      ['oidc', ISSUER, 'Ada'],
      ['oidc', ISSUER, 'ada '],
      ['oidc', `${ISSUER}","a`, 'b'],
      ['oidc', ISSUER, 'a","b'],
      ['oidc', `${ISSUER}\\`, '","b'],
      ['oidc', ISSUER, 'ada\u0000'],
      ['oidc', ISSUER, '\ud800'],
      ['oidc', ISSUER, '\ud801'],
      ['oidc', ISSUER, '\ufffd'],
      ['oidc', `${ISSUER}:ada`],
      ['service', ISSUER, 'ada'],
      ['service', 'ada'],
      ['guest', 'ada'],
      ['api', 'ada'],
      ['api'],
    ] as const
    const made = await Promise.all(parts.map(([kind, ...rest]) => ids.of(kind, ...rest)))
    expect(new Set(made).size).toBe(parts.length)
  })

  test('is recognized as forged', async () => {
    const ids = await openAccountIds(KEY)
    const id = await ids.of('oidc', ISSUER, 'ada')
    expect(await ids.isMinted(id)).toBe(true)
    expect(await ids.isMinted('local')).toBe(true)
    const last = id.endsWith('0') ? '1' : '0'
    for (const invented of [
      `u${'0'.repeat(32)}`,
      id.slice(0, -1) + last,
      `u${last === id[1] ? '2' : last}${id.slice(2)}`,
      id.slice(1),
      `${id}0`,
      id.toUpperCase(),
      'Local',
      '',
    ])
      expect([invented, await ids.isMinted(invented)]).toEqual([invented, false])
    expect(await (await openAccountIds(KEY.with(0, 8))).isMinted(id)).toBe(false)
  })
})
