import { describe, expect, test } from 'bun:test'
import { DEFAULT_WINDOW } from '../ack-window.ts'
import { TokenBucket } from '../token-bucket.ts'
import { Bench, type Peer } from './server-session.fixture.ts'

const flood = (bytes: number): string => 'x'.repeat(bytes)

/** Attaches the second one to a terminal and answers its screen. */
function joinTerminal(bench: Bench, identity = 9): Peer {
  const peer = bench.attach({ identity, role: 'viewer' })
  bench.render(peer.id)
  return peer
}

describe('a window', () => {
  test('[W1] holds output back that is not acknowledged', () => {
    const bench = new Bench()
    const peer = bench.attach({ hello: { window: 4 } })
    bench.output('abcdefgh')
    expect(peer.hearsOutput()).toBe('abcd')
    peer.acks(3)
    expect(peer.hearsOutput()).toBe('efg')
  })

  test('[W1] is the server’s when the client wants more', () => {
    const bench = new Bench({ limits: { window: { startBytes: 5, minBytes: 1, maxBytes: 5 } } })
    const peer = bench.attach()
    bench.output('abcdefgh')
    expect(peer.hearsOutput()).toBe('abcde')
  })

  test('[W2] takes an old ack without harm and refuses one that is ahead', () => {
    const bench = new Bench()
    const peer = bench.attach()
    bench.output('abcd')
    peer.acks(3)
    peer.acks(1)
    peer.acks(3)
    expect(peer.attachment?.acked).toBe(3)
    expect(peer.hears('error', 'closed')).toEqual([])
    peer.acks(5)
    expect(peer.refusal()).toEqual({ error: 'desync', close: 4432 })
  })

  test.each([
    '{"type":"ack","output":-1}',
    '{"type":"ack","output":1.5}',
    '{"type":"ack","output":1e300}',
    '{"type":"ack","output":"1"}',
  ])('[E4] refuses %s', (wire) => {
    const peer = new Bench().attach()
    peer.sendsRaw(wire)
    expect(peer.refusal().error).toBe('bad_frame')
  })

  test('[W5] is filled by frames of at most a quarter of it', () => {
    const bench = new Bench()
    const peer = bench.attach({ hello: { window: 8 } })
    bench.output('abcdefghi')
    expect(peer.hears('stdout').map((heard) => ('text' in heard ? heard.text : ''))).toEqual([
      'ab',
      'cd',
      'ef',
      'gh',
    ])
  })
})

describe('one turn of the loop', () => {
  test('[W7] hands out a bounded amount and asks for another turn', () => {
    const bench = new Bench({ limits: { turnBytes: 10, window: { ...DEFAULT_WINDOW, startBytes: 100 } } })
    const peer = bench.attach()
    bench.takeEffects()
    bench.output(flood(25))
    expect(peer.hearsOutput()).toHaveLength(10)
    expect(bench.takeEffects()).toEqual([{ do: 'again' }])
    bench.run(bench.session.turn(bench.nowMs))
    expect(peer.hearsOutput()).toHaveLength(10)
    bench.run(bench.session.turn(bench.nowMs))
    expect(peer.hearsOutput()).toHaveLength(5)
  })

  test('[W7] is shared by the attachments, and the driver goes first', () => {
    const bench = new Bench({ limits: { turnBytes: 10 } })
    const viewer = bench.attach({ identity: 1, role: 'viewer' })
    const driver = bench.attach({ identity: 2 })
    bench.output(flood(10))
    expect(driver.hearsOutput()).toHaveLength(10)
    expect(viewer.hearsOutput()).toHaveLength(0)
    bench.run(bench.session.turn(bench.nowMs))
    expect(viewer.hearsOutput()).toHaveLength(10)
  })

  test('[W7] lasts as long as the clock is finer than a millisecond', () => {
    const bench = new Bench({ limits: { turnBytes: 10 } })
    const peer = bench.attach()
    bench.output(flood(10))
    bench.nowMs += 0.1
    bench.output(flood(10))
    expect(peer.hearsOutput()).toHaveLength(10)
    bench.nowMs += 1
    bench.output(flood(1))
    expect(peer.hearsOutput()).toHaveLength(10)
  })

  test('[W7] sends pongs and input acks before output', () => {
    const bench = new Bench()
    const peer = bench.attach({ hello: { window: 2 } })
    bench.output('abcd')
    peer.hears()
    peer.sends('in')
    bench.settle(2)
    bench.nowMs += 20
    peer.acks(2)
    peer.says({ type: 'ping', id: 4 })
    const types = peer.hears().map(({ type }) => type)
    expect(types.indexOf('ack')).toBeLessThan(types.indexOf('stdout'))
  })
})

describe('a connection that takes nothing', () => {
  test('[W8] leaves output in the log until it drains', () => {
    const bench = new Bench()
    const peer = bench.attach()
    peer.hears()
    peer.block()
    bench.output('abc')
    expect(peer.hears()).toEqual([])
    peer.drain()
    expect(peer.hearsOutput()).toBe('abc')
  })

  test('[W8] is owed one pong for a thousand pings', () => {
    const bench = new Bench()
    const peer = bench.attach()
    peer.hears()
    peer.block()
    for (let id = 1; id <= 1000; id += 1) peer.says({ type: 'ping', id })
    expect(peer.hears()).toEqual([])
    peer.drain()
    expect(peer.hears()).toEqual([{ type: 'pong', id: 1000 }])
  })

  test('[W8] is told the newest presence, size and input ack only', () => {
    const bench = new Bench({ mode: 'pty' })
    const driver = bench.attach({ identity: 1 })
    const viewer = joinTerminal(bench)
    viewer.hears()
    viewer.block()
    for (let step = 1; step <= 500; step += 1) {
      driver.says({ type: 'resize', cols: 100 + step, rows: 24, seq: step, at: 0 })
      bench.attach({ identity: 100 + step, role: 'viewer' }).says({ type: 'detach' })
      bench.wait(60)
    }
    expect(viewer.hears()).toEqual([])
    expect(bench.session.nextTickMs(bench.nowMs)).toBeGreaterThan(bench.nowMs)
    viewer.drain()
    expect(viewer.hears().map(({ type }) => type)).toEqual(['presence', 'resized'])
  })

  test('[B7] does not make the session wake up for what it cannot be told', () => {
    const bench = new Bench()
    const peer = bench.attach()
    peer.sends('abc')
    bench.settle(3)
    peer.block()
    bench.attach({ identity: 9, role: 'viewer' })
    bench.wait(1_000)
    expect(bench.session.nextTickMs(bench.nowMs)).toBeGreaterThan(bench.nowMs + 1_000)
  })
})

describe('an attachment behind the log', () => {
  const limits = { logBytes: 10, window: { startBytes: 4, minBytes: 1, maxBytes: 4 } }

  test('[F2] of a pipe gets one gap and continues behind it', () => {
    const bench = new Bench({ limits })
    const driver = bench.attach({ identity: 1, hello: { window: 1024 } })
    const viewer = bench.attach({ identity: 2, role: 'viewer' })
    for (let offset = 0; offset < 100; offset += 4) {
      bench.output('abcd')
      driver.acks(offset + 4)
    }
    viewer.acks(4)
    expect(viewer.hears('gap')).toEqual([{ type: 'gap', from: 4, to: 90 }])
    viewer.acks(90)
    expect(viewer.hearsOutput()).toBe('cdab')
  })

  test('[F2] that reads nothing is told nothing more, however much is trimmed', () => {
    const bench = new Bench({ limits })
    const driver = bench.attach({ identity: 1 })
    const viewer = bench.attach({ identity: 2, role: 'viewer' })
    bench.output('abcd')
    driver.acks(4)
    viewer.hears()
    for (let offset = 4; offset < 4_000; offset += 4) {
      bench.output('abcd')
      driver.acks(offset + 4)
    }
    expect(viewer.hears('gap', 'stdout')).toEqual([])
  })

  test('[F3] of a terminal gets a screen, and one at a time', () => {
    const bench = new Bench({ mode: 'pty', limits })
    const driver = bench.attach({ identity: 1 })
    const viewer = joinTerminal(bench)
    bench.takeEffects()
    viewer.hears()
    for (let offset = 0; offset < 100; offset += 4) {
      bench.output('abcd')
      driver.acks(offset + 4)
    }
    expect(bench.takeEffects().filter((effect) => effect.do === 'snapshot')).toEqual([])
    viewer.acks(4)
    for (let step = 0; step < 3; step += 1) {
      bench.output('abcd')
      driver.acks(bench.session.log.end)
    }
    expect(bench.takeEffects().filter((effect) => effect.do === 'snapshot')).toHaveLength(1)
    bench.render(viewer.id)
    expect(viewer.hears('gap', 'snapshot')).toMatchObject([{ type: 'snapshot', at: 112 }])
  })
})

describe('a snapshot', () => {
  test('[S1] is what a new attachment of a running terminal starts with', () => {
    const bench = new Bench({ mode: 'pty' })
    bench.attach({ identity: 1 })
    bench.output('old\u001b[6n')
    bench.takeEffects()
    const late = bench.attach({ identity: 2 })
    expect(bench.takeEffects()).toEqual([{ do: 'snapshot', attachment: late.id }])
    expect(late.hearsOutput()).toBe('')
    bench.render(late.id)
    expect(late.hears()).toEqual([
      { type: 'snapshot', at: 7, cols: 80, rows: 24, bytes: 8, exact: true },
      { type: 'screen', text: 'screen@7' },
    ])
  })

  test('[S2] is followed by the bytes behind it', () => {
    const bench = new Bench({ mode: 'pty' })
    bench.attach({ identity: 1 })
    bench.output('old')
    const late = joinTerminal(bench, 2)
    late.acks(3)
    late.hears()
    bench.output('new')
    expect(late.hears()).toEqual([{ type: 'stdout', text: 'new' }])
  })

  test('[S4] that was not complete is asked for again after a cut', () => {
    const bench = new Bench({ mode: 'pty' })
    bench.attach({ identity: 1 })
    bench.output('old')
    const late = joinTerminal(bench, 2)
    late.cut()
    bench.takeEffects()
    bench.attach({ identity: 2, hello: { resuming: true, received: 0 } })
    expect(bench.takeEffects()).toEqual([{ do: 'snapshot', attachment: 'a2' }])
  })

  test('[S4] that fills a gap is asked for again when the cut came before it was complete', () => {
    const limits = { logBytes: 10, window: { startBytes: 4, minBytes: 1, maxBytes: 4 } }
    const bench = new Bench({ mode: 'pty', limits })
    const driver = bench.attach({ identity: 1 })
    const viewer = joinTerminal(bench, 2)
    for (let offset = 0; offset < 40; offset += 4) {
      bench.output('abcd')
      driver.acks(offset + 4)
    }
    viewer.acks(4)
    bench.render(viewer.id)
    // Nothing of it has arrived: the client still holds 4 bytes.
    viewer.cut()
    bench.takeEffects()
    const back = bench.attach({ identity: 2, hello: { resuming: true, received: 4 } })
    expect(bench.takeEffects()).toEqual([{ do: 'snapshot', attachment: back.id }])
  })

  test('[S5] that is not exact makes the program paint again', () => {
    const bench = new Bench({ mode: 'pty' })
    bench.attach({ identity: 1 })
    const late = bench.attach({ identity: 2 })
    bench.takeEffects()
    bench.render(late.id, false)
    expect(late.hears('snapshot')).toMatchObject([{ exact: false }])
    expect(bench.takeEffects()).toEqual([{ do: 'repaint' }])
  })

  test('[S6] holds output back while it is rendered, and the program of a driver that waits for it', () => {
    const bench = new Bench({ mode: 'pty' })
    bench.attach({ identity: 1 }).says({ type: 'detach' })
    bench.takeEffects()
    const late = bench.attach({ identity: 2 })
    expect(bench.takeEffects()).toContainEqual({ do: 'pause' })
    bench.output('abc')
    expect(late.hearsOutput()).toBe('')
    bench.render(late.id)
    expect(bench.takeEffects()).toContainEqual({ do: 'resume' })
  })

  test('[S6] nobody asked for is ignored, as is one for somebody who left', () => {
    const bench = new Bench({ mode: 'pty' })
    const driver = bench.attach({ identity: 1 })
    driver.hears()
    bench.render(driver.id)
    bench.render('a77')
    const late = bench.attach({ identity: 2 })
    const { id } = late
    late.cut()
    bench.render(id)
    expect(driver.hears('snapshot')).toEqual([])
    expect(late.hears('snapshot')).toEqual([])
  })

  test('[S6] larger than a frame travels in several', () => {
    const bench = new Bench({ mode: 'pty' })
    bench.attach({ identity: 1 })
    const late = bench.attach({ identity: 2 })
    const data = new Uint8Array(150_000).fill(65)
    bench.run(bench.session.snapshotReady(late.id, { at: 0, cols: 80, rows: 24, data, exact: true }, 0))
    const heard = late.hears('snapshot', 'screen')
    expect(heard[0]).toMatchObject({ bytes: 150_000 })
    expect(heard.slice(1).map((one) => ('text' in one ? one.text.length : 0))).toEqual([
      65_536, 65_536, 18_928,
    ])
  })
})

describe('sizes of the terminal', () => {
  test('[S8] that changed while a screen was rendered are told behind it', () => {
    const bench = new Bench({ mode: 'pty' })
    const driver = bench.attach({ identity: 1 })
    bench.output('ab')
    const late = bench.attach({ identity: 2, rights: { authority: 'viewer' } })
    driver.says({ type: 'resize', cols: 90, rows: 30, seq: 1, at: 0 })
    const data = new Uint8Array(1)
    bench.run(bench.session.snapshotReady(late.id, { at: 2, cols: 80, rows: 24, data, exact: true }, 0))
    expect(late.hears('snapshot', 'resized')).toMatchObject([
      { type: 'snapshot', at: 2, cols: 80, rows: 24 },
      { type: 'resized', at: 2, cols: 90, rows: 30 },
    ])
  })

  test('[S8] are told between the bytes where they changed', () => {
    const bench = new Bench({ mode: 'pty' })
    const driver = bench.attach({ identity: 1 })
    const viewer = joinTerminal(bench)
    viewer.hears()
    viewer.block()
    bench.output('ab')
    driver.says({ type: 'resize', cols: 90, rows: 30, seq: 1, at: 0 })
    bench.output('cd')
    viewer.drain()
    expect(viewer.hears('stdout', 'resized')).toEqual([
      { type: 'stdout', text: 'ab' },
      { type: 'resized', at: 2, cols: 90, rows: 30 },
      { type: 'stdout', text: 'cd' },
    ])
  })

  test('[S8] are told again after a resume from before the change', () => {
    const bench = new Bench({ mode: 'pty' })
    const driver = bench.attach({ identity: 1 })
    bench.output('ab')
    driver.says({ type: 'resize', cols: 90, rows: 30, seq: 1, at: 0 })
    bench.output('cd')
    driver.cut()
    const back = bench.attach({ identity: 1, hello: { resuming: true, received: 1 } })
    expect(back.hears('welcome', 'stdout', 'resized')).toMatchObject([
      { type: 'welcome', cols: 80, rows: 24 },
      { type: 'stdout', text: 'b' },
      { type: 'resized', at: 2, cols: 90, rows: 30 },
      { type: 'stdout', text: 'cd' },
    ])
  })
})

describe('a limit per second', () => {
  test('[W9] spreads output over time and loses nothing', () => {
    const bench = new Bench({ limits: { outputBytesPerSecond: 1000 } })
    const peer = bench.attach()
    bench.output(flood(2000))
    let got = peer.hearsOutput().length
    expect(got).toBe(250)
    bench.wait(1000)
    got += peer.hearsOutput().length
    expect(got).toBeGreaterThanOrEqual(1_200)
    expect(got).toBeLessThanOrEqual(1_251)
    bench.wait(1000)
    got += peer.hearsOutput().length
    expect(got).toBe(2000)
  })

  test('[W9] goes on by itself, however much time passes before the session is asked when', () => {
    const bench = new Bench({ limits: { outputBytesPerSecond: 1000 } })
    const peer = bench.attach()
    bench.output(flood(2000))
    peer.hearsOutput()
    bench.nowMs = 10
    expect(bench.session.nextTickMs(bench.nowMs)).toBe(10)
    bench.run(bench.session.tick(bench.nowMs))
    expect(peer.hearsOutput().length).toBe(10)
    peer.cut()
    // Nobody is there whom it could go on for, so nothing is woken for it.
    expect(bench.session.nextTickMs(bench.nowMs + 100)).toBeGreaterThan(1_000)
  })

  test('[W9] is one for all attachments that share it, also when they resume; who drives comes first', () => {
    const bench = new Bench({ limits: { outputBytesPerSecond: 1000 } })
    const rights = { bandwidth: new TokenBucket(1000, 250, 0) }
    const driver = bench.attach({ identity: 1, rights })
    const viewer = bench.attach({ identity: 2, rights: { ...rights, authority: 'viewer' } })
    bench.output(flood(1000))
    expect([driver.hearsOutput().length, viewer.hearsOutput().length]).toEqual([250, 0])
    bench.wait(750)
    expect(driver.hearsOutput().length).toBe(750)
    viewer.cut()
    const back = bench.attach({ identity: 2, rights, hello: { resuming: true } })
    expect(back.hearsOutput().length).toBe(0)
    bench.wait(1000)
    expect(back.hearsOutput().length).toBe(1000)
  })
})
