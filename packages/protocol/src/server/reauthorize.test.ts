import { describe, expect, test } from 'bun:test'
import { identityOf, Bench } from './server-session.fixture.ts'

describe('a connection that has to show its right again', () => {
  test('[A9] is closed when its time comes, not before', () => {
    const bench = new Bench()
    const ada = bench.attach({ rights: { reauthorizeMs: 5_000 } })
    bench.wait(4_999)
    expect(ada.refusal().close).toBeUndefined()
    bench.wait(1)
    expect(ada.refusal()).toEqual({ error: 'reauthorise', close: 4436 })
  })

  test('[A9] is closed before its hello too', () => {
    const bench = new Bench()
    const silent = bench.connect({ reauthorizeMs: 100 })
    bench.wait(100)
    expect(silent.refusal()).toEqual({ error: 'reauthorise', close: 4436 })
  })

  test('[A9] one that has no such time stays', () => {
    const bench = new Bench({ limits: { silenceMs: 1e9 } })
    const ada = bench.attach()
    bench.wait(24 * 60 * 60 * 1000)
    expect(ada.refusal().close).toBeUndefined()
  })

  test('[A9] resumes exactly, keeps its lease, and goes by its new token', () => {
    const bench = new Bench()
    const ada = bench.attach({ identity: 7, rights: { login: 'old', reauthorizeMs: 1_000 } })
    bench.output('before')
    ada.sends('one')
    bench.wait(1_000)
    bench.output(' between')
    const again = bench.connect({ login: 'new', grant: 'g2' })
    again.hello({ identity: identityOf(7), attempt: 2, resuming: true, received: 3 })
    expect(again.hears('welcome')).toMatchObject([{ role: 'driver', output: 3, input: { at: 3, seq: 0 } }])
    bench.output(' after')
    expect(again.attachment).toMatchObject({ login: 'new', grant: 'g2' })
    bench.wait(60_000 - 1)
    expect(bench.session.state.is).toBe('running')
  })

  test('[A9] hands out what it missed', () => {
    const bench = new Bench()
    bench.attach({ identity: 7, rights: { reauthorizeMs: 1_000 } })
    bench.output('before')
    bench.wait(1_000)
    bench.output(' between')
    const again = bench.connect()
    again.hello({ identity: identityOf(7), attempt: 2, resuming: true, received: 6 })
    expect(again.hearsOutput()).toBe(' between')
  })

  test('[A9] is waited for 15 s where the session is kept for nobody', () => {
    for (const comesBack of [true, false]) {
      const bench = new Bench({ keepSeconds: 0 })
      bench.attach({ identity: 7, rights: { reauthorizeMs: 1_000 } })
      bench.wait(1_000)
      bench.wait(14_999)
      bench.takeEffects()
      if (comesBack) {
        const again = bench.connect()
        again.hello({ identity: identityOf(7), attempt: 2, resuming: true })
        expect(again.hears('welcome')).toMatchObject([{ role: 'driver' }])
      }
      bench.wait(1)
      expect(bench.takeEffects().some((effect) => effect.do === 'terminate')).toBe(!comesBack)
    }
  })

  test('[A9] is waited for while others leave', () => {
    const bench = new Bench({ keepSeconds: 0 })
    bench.attach({ identity: 7, rights: { reauthorizeMs: 1_000 } })
    const bob = bench.attach()
    bench.wait(1_000)
    bob.cut()
    expect(bench.takeEffects().some((effect) => effect.do === 'terminate')).toBe(false)
  })

  test('[A10] takes the process along when it is plain', () => {
    const bench = new Bench()
    const plain = bench.connect({ dialect: 'plain', reauthorizeMs: 1_000 })
    bench.wait(1_000)
    expect(plain.refusal()).toEqual({ error: 'reauthorise', close: 4436 })
    expect(bench.takeEffects()).toContainEqual({ do: 'terminate' })
  })
})
