import { describe, expect, test } from 'bun:test'
import { identityOf, SessionFixture } from './server-session.fixture.ts'

describe('a connection that must re-authenticate', () => {
  test('[A9] is closed when its time comes, not before', () => {
    const fixture = new SessionFixture()
    const ada = fixture.attach({ rights: { reauthorizeMs: 5_000 } })
    fixture.wait(4_999)
    expect(ada.refusal().close).toBeUndefined()
    fixture.wait(1)
    expect(ada.refusal()).toEqual({ error: 'reauthorise', close: 4436 })
  })

  test('[A9] is closed before its hello too', () => {
    const fixture = new SessionFixture()
    const silent = fixture.connect({ reauthorizeMs: 100 })
    fixture.wait(100)
    expect(silent.refusal()).toEqual({ error: 'reauthorise', close: 4436 })
  })

  test('[A9] stays open without such a time', () => {
    const fixture = new SessionFixture({ limits: { silenceMs: 1e9 } })
    const ada = fixture.attach()
    fixture.wait(24 * 60 * 60 * 1000)
    expect(ada.refusal().close).toBeUndefined()
  })

  test('[A9] resumes exactly, keeps its lease and has the rights of its new token', () => {
    const fixture = new SessionFixture()
    const ada = fixture.attach({ identity: 7, rights: { login: 'old', reauthorizeMs: 1_000 } })
    fixture.output('before')
    ada.sendInput('one')
    fixture.wait(1_000)
    fixture.output(' between')
    const again = fixture.connect({ login: 'new', grant: 'g2' })
    again.hello({ identity: identityOf(7), attempt: 2, resuming: true, received: 3 })
    expect(again.received('welcome')).toMatchObject([{ role: 'driver', output: 3, input: { at: 3, seq: 0 } }])
    fixture.output(' after')
    expect(again.attachment).toMatchObject({ login: 'new', grant: 'g2' })
    fixture.wait(60_000 - 1)
    expect(fixture.session.state.kind).toBe('running')
  })

  test('[A9] gets the output that it missed', () => {
    const fixture = new SessionFixture()
    fixture.attach({ identity: 7, rights: { reauthorizeMs: 1_000 } })
    fixture.output('before')
    fixture.wait(1_000)
    fixture.output(' between')
    const again = fixture.connect()
    again.hello({ identity: identityOf(7), attempt: 2, resuming: true, received: 6 })
    expect(again.receivedOutput()).toBe(' between')
  })

  test('[A9] is expected for 15 s even with a keep of 0', () => {
    for (const comesBack of [true, false]) {
      const fixture = new SessionFixture({ keepSeconds: 0 })
      fixture.attach({ identity: 7, rights: { reauthorizeMs: 1_000 } })
      fixture.wait(1_000)
      fixture.wait(14_999)
      fixture.takeEffects()
      if (comesBack) {
        const again = fixture.connect()
        again.hello({ identity: identityOf(7), attempt: 2, resuming: true })
        expect(again.received('welcome')).toMatchObject([{ role: 'driver' }])
      }
      fixture.wait(1)
      expect(fixture.takeEffects().some((effect) => effect.do === 'terminate')).toBe(!comesBack)
    }
  })

  test('[A9] is expected while others detach', () => {
    const fixture = new SessionFixture({ keepSeconds: 0 })
    fixture.attach({ identity: 7, rights: { reauthorizeMs: 1_000 } })
    const bob = fixture.attach()
    fixture.wait(1_000)
    bob.disconnect()
    expect(fixture.takeEffects().some((effect) => effect.do === 'terminate')).toBe(false)
  })

  test('[A10] ends the process when it is plain', () => {
    const fixture = new SessionFixture()
    const plain = fixture.connect({ dialect: 'plain', reauthorizeMs: 1_000 })
    fixture.wait(1_000)
    expect(plain.refusal()).toEqual({ error: 'reauthorise', close: 4436 })
    expect(fixture.takeEffects()).toContainEqual({ do: 'terminate' })
  })
})
