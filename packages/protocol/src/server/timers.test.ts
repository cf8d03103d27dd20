import { describe, expect, test } from 'bun:test'
import { ERRORS } from '../errors.ts'
import { identityOf, SessionFixture } from './server-session.fixture.ts'

const names = (fixture: SessionFixture): string[] => fixture.takeEffects().map((effect) => effect.do)

describe('a session without a hello', () => {
  test('[C6] is removed after 10 s without having started a process', () => {
    const fixture = new SessionFixture()
    fixture.wait(9_999)
    expect(fixture.session.state.kind).toBe('pending')
    fixture.wait(1)
    expect(fixture.takeEffects()).toEqual([{ do: 'gone', wasStarted: false }])
    expect(fixture.session.nextTickMs(fixture.nowMs)).toBeUndefined()
  })

  test('[C7] closes its connections', () => {
    const fixture = new SessionFixture()
    const silent = fixture.connect()
    fixture.wait(10_000)
    expect(silent.refusal()).toEqual({ error: 'hello_timeout', close: ERRORS.hello_timeout.close })
  })

  test('[C6] is removed at once when it is ended', () => {
    const fixture = new SessionFixture()
    fixture.run(fixture.session.end(0))
    expect(fixture.takeEffects()).toContainEqual({ do: 'gone', wasStarted: false })
  })
})

describe('a connection', () => {
  test('[C7] without a hello is closed after 10 s', () => {
    const fixture = new SessionFixture()
    const driver = fixture.attach()
    fixture.wait(5_000)
    const silent = fixture.connect()
    fixture.wait(10_000)
    expect(silent.refusal().error).toBe('hello_timeout')
    expect(driver.received('error')).toEqual([])
  })

  test('[H4] that sends nothing for 50 s is closed, and can resume', () => {
    const fixture = new SessionFixture()
    const driver = fixture.attach({ identity: 1 })
    fixture.wait(49_999)
    expect(driver.received('error')).toEqual([])
    fixture.wait(1)
    expect(driver.refusal()).toEqual({ error: 'silent', close: ERRORS.silent.close })
    expect(ERRORS.silent.retryable).toBe(true)
    expect(fixture.attach({ identity: 1, hello: { resuming: true } }).received('welcome')).toHaveLength(1)
  })

  test('[H1] that sends anything stays open', () => {
    const fixture = new SessionFixture()
    const driver = fixture.attach()
    for (let times = 0; times < 10; times += 1) {
      fixture.wait(40_000)
      driver.sendMessage({ type: 'ping', id: times })
    }
    expect(driver.received('error')).toEqual([])
  })

  test('[H2] gets a pong with the id of its ping', () => {
    const fixture = new SessionFixture()
    const driver = fixture.attach()
    driver.sendMessage({ type: 'ping', id: 77 })
    expect(driver.received('pong')).toEqual([{ type: 'pong', id: 77 }])
  })

  test('[P1] of a plain client has no silence timeout', () => {
    const fixture = new SessionFixture({ keepSeconds: 0 })
    const plain = fixture.connect({ dialect: 'plain' })
    fixture.wait(10_000_000)
    expect(plain.received()).toEqual([])
  })
})

describe('a session without connections', () => {
  test('[C8] ends after its keep time, and is removed after its process', () => {
    const fixture = new SessionFixture({ keepSeconds: 60 })
    fixture.attach().disconnect()
    fixture.takeEffects()
    fixture.wait(59_999)
    expect(names(fixture)).toEqual([])
    fixture.wait(1)
    expect(names(fixture)).toEqual(['terminate'])
    fixture.run(fixture.session.ended({ code: null, signal: 'SIGHUP', truncated: false }, fixture.nowMs))
    expect(fixture.takeEffects()).toEqual([{ do: 'gone', wasStarted: true }])
  })

  test('[C8] is kept for its full time after the exit of its process', () => {
    const fixture = new SessionFixture({ keepSeconds: 60 })
    fixture.attach({ identity: 1 }).disconnect()
    fixture.wait(50_000)
    fixture.exit(3)
    fixture.wait(50_000)
    expect(fixture.session.state.kind).toBe('exited')
    fixture.wait(10_000)
    expect(fixture.session.state.kind).toBe('gone')
  })

  test('[C8] continues when a client attaches in time', () => {
    const fixture = new SessionFixture({ keepSeconds: 60 })
    fixture.attach({ identity: 1 }).disconnect()
    fixture.wait(59_000)
    const back = fixture.attach({ identity: 1, hello: { resuming: true } })
    fixture.takeEffects()
    fixture.wait(30_000)
    expect(names(fixture)).toEqual([])
    expect(back.received('error')).toEqual([])
  })

  test('[C9] with a keep of 0 ends with its last connection', () => {
    const fixture = new SessionFixture({ keepSeconds: 0 })
    const first = fixture.attach({ identity: 1 })
    const second = fixture.attach({ identity: 2, role: 'viewer' })
    fixture.takeEffects()
    first.disconnect()
    expect(names(fixture)).toEqual([])
    second.disconnect()
    expect(names(fixture)).toEqual(['terminate'])
  })

  test('[P6] of its plain creator ends, even if others watch', () => {
    const fixture = new SessionFixture({ keepSeconds: 0 })
    const plain = fixture.connect({ dialect: 'plain' })
    const viewer = fixture.attach({ identity: 2, role: 'viewer' })
    fixture.takeEffects()
    plain.disconnect()
    expect(names(fixture)).toEqual(['terminate'])
    fixture.run(fixture.session.ended({ code: null, signal: 'SIGHUP', truncated: false }, fixture.nowMs))
    expect(viewer.received('exit')).toMatchObject([{ signal: 'SIGHUP' }])
  })

  test('[B7] requests no endless ticks while it ends', () => {
    for (const keepSeconds of [0, 5]) {
      const fixture = new SessionFixture({ keepSeconds })
      fixture.attach().disconnect()
      fixture.wait(keepSeconds * 1000)
      expect(fixture.session.nextTickMs(fixture.nowMs)).toBe(fixture.nowMs + 10_000)
    }
  })
})

describe('a session that is ended', () => {
  test('[X12] sends the exit of its process', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    fixture.takeEffects()
    fixture.run(fixture.session.end(0))
    fixture.run(fixture.session.end(0))
    expect(names(fixture)).toEqual(['terminate'])
    fixture.run(fixture.session.ended({ code: null, signal: 'SIGTERM', truncated: false }, 5))
    expect(peer.received('exit', 'closed').map(({ type }) => type)).toEqual(['exit', 'closed'])
    peer.disconnect()
    expect(fixture.takeEffects()).toEqual([{ do: 'gone', wasStarted: true }])
  })

  test('[X12] is removed after 10 s whatever its process and its clients do', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    fixture.run(fixture.session.end(0))
    fixture.wait(10_000)
    expect(peer.refusal()).toEqual({ error: 'session_ended', close: ERRORS.session_ended.close })
    expect(fixture.session.state.kind).toBe('gone')
  })

  test('[C10] refuses connections while it ends, and delivers the exit to those it has', () => {
    const fixture = new SessionFixture()
    const early = fixture.attach({ identity: 1 })
    const silent = fixture.connect()
    fixture.run(fixture.session.end(0))
    const late = fixture.connect()
    silent.hello({ identity: identityOf(2) })
    for (const refused of [silent, late])
      expect(refused.refusal()).toEqual({ error: 'session_gone', close: ERRORS.session_gone.close })
    fixture.exit(9)
    expect(early.received('exit')).toMatchObject([{ code: 9 }])
  })

  test('[C8] [C10] takes no input from a client that returns after the keep time', () => {
    const fixture = new SessionFixture({ keepSeconds: 5 })
    fixture.attach({ identity: 1 }).disconnect()
    fixture.wait(5_000)
    expect(names(fixture)).toContain('terminate')
    for (const resuming of [true, false]) {
      const late = fixture.connect()
      late.hello({ identity: identityOf(1), attempt: 2, resuming })
      late.sendInput('x')
      expect(late.received('welcome')).toEqual([])
    }
    expect(names(fixture)).not.toContain('write')
  })
})

describe('a session with a lifetime', () => {
  test('[C14] is ended when that is over, whatever it does, and says why', () => {
    const fixture = new SessionFixture({ lifetimeSeconds: 100, limits: { silenceMs: 1e9 } })
    const peer = fixture.attach()
    fixture.takeEffects()
    for (let second = 0; second < 99; second += 1) {
      fixture.wait(1_000)
      fixture.output('x')
    }
    expect(names(fixture)).not.toContain('terminate')
    peer.received()
    fixture.wait(1_000)
    expect(names(fixture).filter((name) => name === 'terminate')).toHaveLength(1)
    expect(peer.received('error')).toMatchObject([
      { code: 'timed_out', message: 'The session was ended: its lifetime of 100 s has passed', fatal: false },
    ])
    fixture.exit(9)
    expect(peer.received('exit')).toMatchObject([{ code: 9 }])
  })

  test('[C14] is ended without connections too', () => {
    const fixture = new SessionFixture({ lifetimeSeconds: 100, keepSeconds: 1_000 })
    fixture.attach().disconnect()
    fixture.wait(99_999)
    expect(names(fixture)).not.toContain('terminate')
    fixture.wait(1)
    expect(names(fixture)).toContain('terminate')
  })
})

describe('a session with an idle timeout', () => {
  const IDLE = { idleSeconds: 10, keepSeconds: 1_000 }

  test('[C15] is ended after that time without input and output, and says why', () => {
    const fixture = new SessionFixture(IDLE)
    const peer = fixture.attach()
    fixture.wait(9_000)
    peer.sendInput('x')
    fixture.wait(9_000)
    fixture.output('x')
    fixture.takeEffects()
    // Heartbeats are neither.
    peer.sendMessage({ type: 'ping', id: 1 })
    fixture.wait(9_999)
    expect(names(fixture)).not.toContain('terminate')
    peer.received()
    fixture.wait(1)
    expect(names(fixture)).toContain('terminate')
    expect(peer.received('error')).toMatchObject([
      {
        code: 'timed_out',
        message: 'The session was ended: no input or output for 10 s',
        fatal: false,
      },
    ])
  })

  test('[C15] is kept for its keep time without connections, and counts anew after a reconnect', () => {
    const fixture = new SessionFixture(IDLE)
    fixture.attach({ identity: 1 }).disconnect()
    fixture.wait(500_000)
    fixture.attach({ identity: 1, hello: { resuming: true } })
    fixture.takeEffects()
    fixture.wait(9_999)
    expect(names(fixture)).not.toContain('terminate')
    fixture.wait(1)
    expect(names(fixture)).toContain('terminate')
  })

  test('[B7] has no timers once its process has exited', () => {
    const fixture = new SessionFixture({ idleSeconds: 10, lifetimeSeconds: 20 })
    const peer = fixture.attach()
    fixture.output('x')
    fixture.exit(0)
    fixture.wait(30_000)
    expect(peer.received('error')).toEqual([])
  })
})

describe('a server that stops', () => {
  test('[E1] closes every connection with a retryable error', () => {
    const fixture = new SessionFixture()
    const greeted = fixture.attach({ identity: 1 })
    const silent = fixture.connect()
    fixture.run(fixture.session.closeAll({ code: 'shutting_down', message: 'Restarting' }, 0))
    expect(greeted.received('error', 'closed')).toEqual([
      { type: 'error', code: 'shutting_down', message: 'Restarting', fatal: true },
      { type: 'closed', code: 1012, reason: 'shutting_down' },
    ])
    expect(silent.refusal()).toEqual({ error: 'shutting_down', close: 1012 })
    expect(fixture.attach({ identity: 1, hello: { resuming: true } }).received('welcome')).toHaveLength(1)
  })
})

test('[X13] an announced stop has its reason as a field in sandwire.v1', () => {
  const fixture = new SessionFixture()
  const client = fixture.attach({ identity: 1 })
  fixture.run(fixture.session.warnAll({ code: 'shutting_down', message: 'Stopping', reason: 'idle' }, 0))
  expect(client.received('error', 'closed')).toEqual([
    { type: 'error', code: 'shutting_down', message: 'Stopping', fatal: false, reason: 'idle' },
  ])
})

describe('a call after the session has ended', () => {
  test('[C10] has no effects', () => {
    const fixture = new SessionFixture({ keepSeconds: 0 })
    const peer = fixture.attach()
    fixture.run(fixture.session.end(0))
    fixture.wait(10_000)
    fixture.takeEffects()
    peer.received()
    peer.sendInput('x')
    peer.disconnect()
    fixture.output('x')
    fixture.exit()
    fixture.settle(1)
    fixture.run(fixture.session.inputClosed(fixture.nowMs))
    fixture.run(fixture.session.turn(fixture.nowMs))
    fixture.run(fixture.session.drained(peer.connectionId, fixture.nowMs))
    fixture.run(fixture.session.end(fixture.nowMs))
    fixture.wait(1_000_000)
    expect(peer.received()).toEqual([])
    expect(fixture.takeEffects()).toEqual([])
  })
})
