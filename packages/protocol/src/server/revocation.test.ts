import { describe, expect, test } from 'bun:test'
import type { AttachmentFilter } from './revocation.ts'
import { SessionFixture, identityOf } from './server-session.fixture.ts'

function revoke(fixture: SessionFixture, which: AttachmentFilter): number {
  const { effects, closed } = fixture.session.revoke(which, fixture.nowMs)
  fixture.run(effects)
  return closed
}

describe('revoking', () => {
  test('[A8] closes the connections of a principal and no others', () => {
    const fixture = new SessionFixture()
    const ada = fixture.attach({ rights: { principal: 'ada' } })
    const bob = fixture.attach({ rights: { principal: 'bob' } })
    expect(revoke(fixture, { principal: 'ada' })).toBe(1)
    expect(ada.refusal()).toEqual({ error: 'revoked', close: 4435 })
    expect(bob.refusal()).toEqual({ error: undefined, close: undefined })
    expect(revoke(fixture, { principal: 'ada' })).toBe(0)
  })

  test('[A8] frees the lease at once, also one that was reserved', () => {
    for (const isCut of [false, true]) {
      const fixture = new SessionFixture()
      const ada = fixture.attach({ rights: { principal: 'ada' } })
      if (isCut) ada.disconnect()
      expect(revoke(fixture, { principal: 'ada' })).toBe(isCut ? 0 : 1)
      const bob = fixture.attach({ rights: { principal: 'bob' } })
      expect(bob.received('welcome')).toMatchObject([{ role: 'driver' }])
    }
  })

  test('[A8] makes a resume impossible, connected or not', () => {
    for (const isCut of [false, true]) {
      const fixture = new SessionFixture()
      const ada = fixture.attach({ identity: 7, rights: { principal: 'ada' } })
      if (isCut) ada.disconnect()
      revoke(fixture, { principal: 'ada' })
      const again = fixture.connect({ principal: 'ada' })
      again.hello({ identity: identityOf(7), attempt: 2, resuming: true })
      expect(again.refusal().error).toBe('resume_lost')
    }
  })

  test('[A8] ignores later messages of closed connections', () => {
    const fixture = new SessionFixture()
    const ada = fixture.attach({ rights: { principal: 'ada' } })
    revoke(fixture, { attachment: ada.id })
    fixture.takeEffects()
    ada.sendInput('rm -rf /\n')
    expect(fixture.takeEffects()).toEqual([])
  })

  test('[A8] includes connections without a hello, unless one attachment is named', () => {
    const fixture = new SessionFixture()
    const known = fixture.attach({ rights: { principal: 'ada' } })
    const silent = fixture.connect({ principal: 'ada' })
    expect(revoke(fixture, { principal: 'ada', attachment: known.id })).toBe(1)
    expect(silent.refusal().close).toBeUndefined()
    expect(revoke(fixture, { principal: 'ada' })).toBe(1)
    expect(silent.refusal().close).toBe(4435)
  })

  test('[A8] closes connections of a sign-in or grant, and matches every given field', () => {
    const fixture = new SessionFixture()
    const rights = { principal: 'ada', login: 'l1', grant: 'g1' }
    const both = fixture.attach({ rights })
    const login = fixture.attach({ rights: { ...rights, grant: 'g2' } })
    const grant = fixture.attach({ rights: { ...rights, login: 'l2' } })
    const neither = fixture.attach({ rights: { principal: 'ada' } })
    expect(revoke(fixture, { login: 'l1', grant: 'g1' })).toBe(1)
    expect(both.refusal().error).toBe('revoked')
    expect(revoke(fixture, { principal: 'bob', login: 'l1' })).toBe(0)
    expect(revoke(fixture, { login: 'l1' })).toBe(1)
    expect(login.refusal().error).toBe('revoked')
    expect(revoke(fixture, { grant: 'g1' })).toBe(1)
    expect(grant.refusal().error).toBe('revoked')
    expect(neither.refusal().error).toBeUndefined()
  })

  test('[A8] uses the sign-in of the newest connection', () => {
    const fixture = new SessionFixture()
    fixture.attach({ identity: 7, rights: { login: 'old', grant: 'g1' } })
    const again = fixture.connect({ login: 'new', grant: 'g2' })
    again.hello({ identity: identityOf(7), attempt: 2, resuming: true })
    again.received()
    expect(revoke(fixture, { login: 'old' })).toBe(0)
    expect(revoke(fixture, { grant: 'g1' })).toBe(0)
    again.disconnect()
    expect(revoke(fixture, { login: 'new' })).toBe(0)
    const third = fixture.connect({ login: 'new', grant: 'g2' })
    third.hello({ identity: identityOf(7), attempt: 3, resuming: true })
    expect(third.refusal().error).toBe('resume_lost')
  })

  test('[A8] sends the others the new presence', () => {
    const fixture = new SessionFixture()
    fixture.attach({ rights: { principal: 'ada' } })
    const bob = fixture.attach({ rights: { principal: 'bob' } })
    fixture.wait(100)
    bob.received()
    revoke(fixture, { principal: 'ada' })
    fixture.wait(100)
    expect(bob.received('presence')).toMatchObject([{ driver: null, attachments: [{ id: bob.id }] }])
  })

  test('[A8] ends the process of a plain client, which cannot resume', () => {
    const fixture = new SessionFixture()
    const plain = fixture.connect({ principal: 'ada', dialect: 'plain' })
    expect(revoke(fixture, { principal: 'ada' })).toBe(1)
    expect(plain.refusal()).toEqual({ error: 'revoked', close: 4435 })
    expect(fixture.takeEffects()).toContainEqual({ do: 'terminate' })
  })
})

test('[A7] the name in the token replaces the one in hello', () => {
  const fixture = new SessionFixture()
  const named = fixture.attach({ rights: { name: 'Ada' }, hello: { name: 'root' } })
  expect(named.attachment?.name).toBe('Ada')
  expect(fixture.attach({ hello: { name: 'laptop' } }).attachment?.name).toBe('laptop')
})

test('[A8] a session without a match sends nothing', () => {
  const fixture = new SessionFixture()
  const ada = fixture.attach({ rights: { principal: 'ada' } })
  fixture.wait(1_000)
  ada.received('presence')
  expect(revoke(fixture, { principal: 'bob' })).toBe(0)
  fixture.wait(1_000)
  expect(ada.received('presence')).toEqual([])
})
