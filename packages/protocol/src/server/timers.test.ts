import { describe, expect, test } from 'bun:test'
import { ERRORS } from '../errors.ts'
import { Bench } from './server-session.fixture.ts'

const names = (bench: Bench): string[] => bench.takeEffects().map((effect) => effect.do)

describe('a session nobody greets', () => {
  test('[C6] is gone after 10 s, without having started anything', () => {
    const bench = new Bench()
    bench.wait(9_999)
    expect(bench.session.state.is).toBe('pending')
    bench.wait(1)
    expect(bench.takeEffects()).toEqual([{ do: 'gone', wasStarted: false }])
    expect(bench.session.nextTickMs(bench.nowMs)).toBeUndefined()
  })

  test('[C7] takes its silent connections with it', () => {
    const bench = new Bench()
    const silent = bench.connect()
    bench.wait(10_000)
    expect(silent.refusal()).toEqual({ error: 'hello_timeout', close: ERRORS.hello_timeout.close })
  })

  test('[C6] is gone at once when it is ended', () => {
    const bench = new Bench()
    bench.run(bench.session.end(0))
    expect(bench.takeEffects()).toContainEqual({ do: 'gone', wasStarted: false })
  })
})

describe('a connection', () => {
  test('[C7] without a hello is closed after 10 s', () => {
    const bench = new Bench()
    const driver = bench.attach()
    bench.wait(5_000)
    const silent = bench.connect()
    bench.wait(10_000)
    expect(silent.refusal().error).toBe('hello_timeout')
    expect(driver.hears('error')).toEqual([])
  })

  test('[H4] that says nothing for 50 s is closed, and can resume', () => {
    const bench = new Bench()
    const driver = bench.attach({ identity: 1 })
    bench.wait(49_999)
    expect(driver.hears('error')).toEqual([])
    bench.wait(1)
    expect(driver.refusal()).toEqual({ error: 'silent', close: ERRORS.silent.close })
    expect(ERRORS.silent.retryable).toBe(true)
    expect(bench.attach({ identity: 1, hello: { resuming: true } }).hears('welcome')).toHaveLength(1)
  })

  test('[H1] that says anything at all stays', () => {
    const bench = new Bench()
    const driver = bench.attach()
    for (let times = 0; times < 10; times += 1) {
      bench.wait(40_000)
      driver.says({ type: 'ping', id: times })
    }
    expect(driver.hears('error')).toEqual([])
  })

  test('[H2] gets a pong with the id of its ping', () => {
    const bench = new Bench()
    const driver = bench.attach()
    driver.says({ type: 'ping', id: 77 })
    expect(driver.hears('pong')).toEqual([{ type: 'pong', id: 77 }])
  })

  test('[P1] of a plain client may be silent for ever', () => {
    const bench = new Bench({ keepSeconds: 0 })
    const plain = bench.connect({ dialect: 'plain' })
    bench.wait(10_000_000)
    expect(plain.hears()).toEqual([])
  })
})

describe('a session without connections', () => {
  test('[C8] is ended when its keep is over, and gone when its process is', () => {
    const bench = new Bench({ keepSeconds: 60 })
    bench.attach().cut()
    bench.takeEffects()
    bench.wait(59_999)
    expect(names(bench)).toEqual([])
    bench.wait(1)
    expect(names(bench)).toEqual(['terminate'])
    bench.run(bench.session.ended({ code: null, signal: 'SIGHUP', truncated: false }, bench.nowMs))
    expect(bench.takeEffects()).toEqual([{ do: 'gone', wasStarted: true }])
  })

  test('[C8] is kept anew from the exit of its process', () => {
    const bench = new Bench({ keepSeconds: 60 })
    bench.attach({ identity: 1 }).cut()
    bench.wait(50_000)
    bench.exit(3)
    bench.wait(50_000)
    expect(bench.session.state.is).toBe('exited')
    bench.wait(10_000)
    expect(bench.session.state.is).toBe('gone')
  })

  test('[C8] lives on when somebody comes in time', () => {
    const bench = new Bench({ keepSeconds: 60 })
    bench.attach({ identity: 1 }).cut()
    bench.wait(59_000)
    const back = bench.attach({ identity: 1, hello: { resuming: true } })
    bench.takeEffects()
    bench.wait(30_000)
    expect(names(bench)).toEqual([])
    expect(back.hears('error')).toEqual([])
  })

  test('[C9] with a keep of 0 ends with its last connection', () => {
    const bench = new Bench({ keepSeconds: 0 })
    const first = bench.attach({ identity: 1 })
    const second = bench.attach({ identity: 2, role: 'viewer' })
    bench.takeEffects()
    first.cut()
    expect(names(bench)).toEqual([])
    second.cut()
    expect(names(bench)).toEqual(['terminate'])
  })

  test('[P6] of its plain creator is ended, whoever else watches', () => {
    const bench = new Bench({ keepSeconds: 0 })
    const plain = bench.connect({ dialect: 'plain' })
    const viewer = bench.attach({ identity: 2, role: 'viewer' })
    bench.takeEffects()
    plain.cut()
    expect(names(bench)).toEqual(['terminate'])
    bench.run(bench.session.ended({ code: null, signal: 'SIGHUP', truncated: false }, bench.nowMs))
    expect(viewer.hears('exit')).toMatchObject([{ signal: 'SIGHUP' }])
  })

  test('[B7] does not want to be woken again and again while it ends', () => {
    for (const keepSeconds of [0, 5]) {
      const bench = new Bench({ keepSeconds })
      bench.attach().cut()
      bench.wait(keepSeconds * 1000)
      expect(bench.session.nextTickMs(bench.nowMs)).toBe(bench.nowMs + 10_000)
    }
  })
})

describe('a session that is ended', () => {
  test('[X12] tells those who are there the exit of its process', () => {
    const bench = new Bench()
    const peer = bench.attach()
    bench.takeEffects()
    bench.run(bench.session.end(0))
    bench.run(bench.session.end(0))
    expect(names(bench)).toEqual(['terminate'])
    bench.run(bench.session.ended({ code: null, signal: 'SIGTERM', truncated: false }, 5))
    expect(peer.hears('exit', 'closed').map(({ type }) => type)).toEqual(['exit', 'closed'])
    peer.cut()
    expect(bench.takeEffects()).toEqual([{ do: 'gone', wasStarted: true }])
  })

  test('[X12] is gone after 10 s whatever its process and its readers do', () => {
    const bench = new Bench()
    const peer = bench.attach()
    bench.run(bench.session.end(0))
    bench.wait(10_000)
    expect(peer.refusal()).toEqual({ error: 'session_ended', close: ERRORS.session_ended.close })
    expect(bench.session.state.is).toBe('gone')
  })

  test('[X12] takes new attachments for the time it has left', () => {
    const bench = new Bench()
    bench.attach({ identity: 1 })
    bench.run(bench.session.end(0))
    const late = bench.attach({ identity: 2, role: 'viewer' })
    bench.exit(9)
    expect(late.hears('exit')).toMatchObject([{ code: 9 }])
  })
})

describe('a server that stops', () => {
  test('[E1] closes every connection with a reason that lets clients come back', () => {
    const bench = new Bench()
    const greeted = bench.attach({ identity: 1 })
    const silent = bench.connect()
    bench.run(bench.session.closeAll({ code: 'shutting_down', message: 'Restarting' }, 0))
    expect(greeted.hears('error', 'closed')).toEqual([
      { type: 'error', code: 'shutting_down', message: 'Restarting', fatal: true },
      { type: 'closed', code: 1012, reason: 'shutting_down' },
    ])
    expect(silent.refusal()).toEqual({ error: 'shutting_down', close: 1012 })
    expect(bench.attach({ identity: 1, hello: { resuming: true } }).hears('welcome')).toHaveLength(1)
  })
})

test('[X13] an announced stop has its reason as a field in sandwire.v1', () => {
  const bench = new Bench()
  const client = bench.attach({ identity: 1 })
  bench.run(bench.session.warnAll({ code: 'shutting_down', message: 'Stopping', reason: 'idle' }, 0))
  expect(client.hears('error', 'closed')).toEqual([
    { type: 'error', code: 'shutting_down', message: 'Stopping', fatal: false, reason: 'idle' },
  ])
})

describe('what a session is asked after it is gone', () => {
  test('[C10] is answered with nothing', () => {
    const bench = new Bench({ keepSeconds: 0 })
    const peer = bench.attach()
    bench.run(bench.session.end(0))
    bench.wait(10_000)
    bench.takeEffects()
    peer.hears()
    peer.sends('x')
    peer.cut()
    bench.output('x')
    bench.exit()
    bench.settle(1)
    bench.run(bench.session.inputClosed(bench.nowMs))
    bench.run(bench.session.turn(bench.nowMs))
    bench.run(bench.session.drained(peer.connectionId, bench.nowMs))
    bench.run(bench.session.end(bench.nowMs))
    bench.wait(1_000_000)
    expect(peer.hears()).toEqual([])
    expect(bench.takeEffects()).toEqual([])
  })
})
