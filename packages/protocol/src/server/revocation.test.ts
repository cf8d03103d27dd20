import { describe, expect, test } from 'bun:test'
import type { AttachmentFilter } from './revocation.ts'
import { Bench, identityOf } from './server-session.fixture.ts'

function revoke(bench: Bench, which: AttachmentFilter): number {
  const { effects, closed } = bench.session.revoke(which, bench.nowMs)
  bench.run(effects)
  return closed
}

describe('revoking', () => {
  test('[A8] closes the connections of a principal and no others', () => {
    const bench = new Bench()
    const ada = bench.attach({ rights: { principal: 'ada' } })
    const bob = bench.attach({ rights: { principal: 'bob' } })
    expect(revoke(bench, { principal: 'ada' })).toBe(1)
    expect(ada.refusal()).toEqual({ error: 'revoked', close: 4435 })
    expect(bob.refusal()).toEqual({ error: undefined, close: undefined })
    expect(revoke(bench, { principal: 'ada' })).toBe(0)
  })

  test('[A8] frees the lease at once, also one that was reserved', () => {
    for (const isCut of [false, true]) {
      const bench = new Bench()
      const ada = bench.attach({ rights: { principal: 'ada' } })
      if (isCut) ada.cut()
      expect(revoke(bench, { principal: 'ada' })).toBe(isCut ? 0 : 1)
      const bob = bench.attach({ rights: { principal: 'bob' } })
      expect(bob.hears('welcome')).toMatchObject([{ role: 'driver' }])
    }
  })

  test('[A8] makes a resume impossible, connected or not', () => {
    for (const isCut of [false, true]) {
      const bench = new Bench()
      const ada = bench.attach({ identity: 7, rights: { principal: 'ada' } })
      if (isCut) ada.cut()
      revoke(bench, { principal: 'ada' })
      const again = bench.connect({ principal: 'ada' })
      again.hello({ identity: identityOf(7), attempt: 2, resuming: true })
      expect(again.refusal().error).toBe('resume_lost')
    }
  })

  test('[A8] hears nothing more from whom it closed', () => {
    const bench = new Bench()
    const ada = bench.attach({ rights: { principal: 'ada' } })
    revoke(bench, { attachment: ada.id })
    bench.takeEffects()
    ada.sends('rm -rf /\n')
    expect(bench.takeEffects()).toEqual([])
  })

  test('[A8] takes in connections before their hello, but not when one attachment is named', () => {
    const bench = new Bench()
    const known = bench.attach({ rights: { principal: 'ada' } })
    const silent = bench.connect({ principal: 'ada' })
    expect(revoke(bench, { principal: 'ada', attachment: known.id })).toBe(1)
    expect(silent.refusal().close).toBeUndefined()
    expect(revoke(bench, { principal: 'ada' })).toBe(1)
    expect(silent.refusal().close).toBe(4435)
  })

  test('[A8] closes what hangs on a sign-in or a grant, and matches everything that is given', () => {
    const bench = new Bench()
    const rights = { principal: 'ada', login: 'l1', grant: 'g1' }
    const both = bench.attach({ rights })
    const login = bench.attach({ rights: { ...rights, grant: 'g2' } })
    const grant = bench.attach({ rights: { ...rights, login: 'l2' } })
    const neither = bench.attach({ rights: { principal: 'ada' } })
    expect(revoke(bench, { login: 'l1', grant: 'g1' })).toBe(1)
    expect(both.refusal().error).toBe('revoked')
    expect(revoke(bench, { principal: 'bob', login: 'l1' })).toBe(0)
    expect(revoke(bench, { login: 'l1' })).toBe(1)
    expect(login.refusal().error).toBe('revoked')
    expect(revoke(bench, { grant: 'g1' })).toBe(1)
    expect(grant.refusal().error).toBe('revoked')
    expect(neither.refusal().error).toBeUndefined()
  })

  test('[A8] goes by the sign-in of the newest connection of an attachment', () => {
    const bench = new Bench()
    bench.attach({ identity: 7, rights: { login: 'old', grant: 'g1' } })
    const again = bench.connect({ login: 'new', grant: 'g2' })
    again.hello({ identity: identityOf(7), attempt: 2, resuming: true })
    again.hears()
    expect(revoke(bench, { login: 'old' })).toBe(0)
    expect(revoke(bench, { grant: 'g1' })).toBe(0)
    again.cut()
    expect(revoke(bench, { login: 'new' })).toBe(0)
    const third = bench.connect({ login: 'new', grant: 'g2' })
    third.hello({ identity: identityOf(7), attempt: 3, resuming: true })
    expect(third.refusal().error).toBe('resume_lost')
  })

  test('[A8] tells the others who is left', () => {
    const bench = new Bench()
    bench.attach({ rights: { principal: 'ada' } })
    const bob = bench.attach({ rights: { principal: 'bob' } })
    bench.wait(100)
    bob.hears()
    revoke(bench, { principal: 'ada' })
    bench.wait(100)
    expect(bob.hears('presence')).toMatchObject([{ driver: null, attachments: [{ id: bob.id }] }])
  })

  test('[A8] ends the process of a plain client, which cannot come back', () => {
    const bench = new Bench()
    const plain = bench.connect({ principal: 'ada', dialect: 'plain' })
    expect(revoke(bench, { principal: 'ada' })).toBe(1)
    expect(plain.refusal()).toEqual({ error: 'revoked', close: 4435 })
    expect(bench.takeEffects()).toContainEqual({ do: 'terminate' })
  })
})

test('[A7] others see the name of the token, whatever hello says', () => {
  const bench = new Bench()
  const named = bench.attach({ rights: { name: 'Ada' }, hello: { name: 'root' } })
  expect(named.attachment?.name).toBe('Ada')
  expect(bench.attach({ hello: { name: 'laptop' } }).attachment?.name).toBe('laptop')
})
