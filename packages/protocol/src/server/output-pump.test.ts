import { describe, expect, test } from 'bun:test'
import { DEFAULT_WINDOW } from '../ack-window.ts'
import { TokenBucket } from '../token-bucket.ts'
import { SessionFixture, type Peer } from './server-session.fixture.ts'

const flood = (bytes: number): string => 'x'.repeat(bytes)

/** Attaches the second one to a terminal and answers its screen. */
function joinTerminal(fixture: SessionFixture, identity = 9): Peer {
  const peer = fixture.attach({ identity, role: 'viewer' })
  fixture.render(peer.id)
  return peer
}

describe('a window', () => {
  test('[W1] holds output back that is not acknowledged', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach({ hello: { window: 4 } })
    fixture.output('abcdefgh')
    expect(peer.receivedOutput()).toBe('abcd')
    peer.ack(3)
    expect(peer.receivedOutput()).toBe('efg')
  })

  test('[W1] is limited by the server', () => {
    const fixture = new SessionFixture({ limits: { window: { startBytes: 5, minBytes: 1, maxBytes: 5 } } })
    const peer = fixture.attach()
    fixture.output('abcdefgh')
    expect(peer.receivedOutput()).toBe('abcde')
  })

  test('[W2] ignores an old ack and refuses one beyond what was sent', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    fixture.output('abcd')
    peer.ack(3)
    peer.ack(1)
    peer.ack(3)
    expect(peer.attachment?.acked).toBe(3)
    expect(peer.received('error', 'closed')).toEqual([])
    peer.ack(5)
    expect(peer.refusal()).toEqual({ error: 'desync', close: 4432 })
  })

  test.each([
    '{"type":"ack","output":-1}',
    '{"type":"ack","output":1.5}',
    '{"type":"ack","output":1e300}',
    '{"type":"ack","output":"1"}',
  ])('[E4] refuses %s', (wire) => {
    const peer = new SessionFixture().attach()
    peer.sendRaw(wire)
    expect(peer.refusal().error).toBe('bad_frame')
  })

  test('[W5] is filled by frames of at most a quarter of it', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach({ hello: { window: 8 } })
    fixture.output('abcdefghi')
    expect(peer.received('stdout').map((received) => ('text' in received ? received.text : ''))).toEqual([
      'ab',
      'cd',
      'ef',
      'gh',
    ])
  })
})

describe('one turn of the loop', () => {
  test('[W7] sends a bounded amount and requests another turn', () => {
    const fixture = new SessionFixture({
      limits: { turnBytes: 10, window: { ...DEFAULT_WINDOW, startBytes: 100 } },
    })
    const peer = fixture.attach()
    fixture.takeEffects()
    fixture.output(flood(25))
    expect(peer.receivedOutput()).toHaveLength(10)
    expect(fixture.takeEffects()).toEqual([{ do: 'again' }])
    fixture.run(fixture.session.turn(fixture.nowMs))
    expect(peer.receivedOutput()).toHaveLength(10)
    fixture.run(fixture.session.turn(fixture.nowMs))
    expect(peer.receivedOutput()).toHaveLength(5)
  })

  test('[W7] is shared by the attachments, the driver first', () => {
    const fixture = new SessionFixture({ limits: { turnBytes: 10 } })
    const viewer = fixture.attach({ identity: 1, role: 'viewer' })
    const driver = fixture.attach({ identity: 2 })
    fixture.output(flood(10))
    expect(driver.receivedOutput()).toHaveLength(10)
    expect(viewer.receivedOutput()).toHaveLength(0)
    fixture.run(fixture.session.turn(fixture.nowMs))
    expect(viewer.receivedOutput()).toHaveLength(10)
  })

  test('[W7] lasts as long as the clock is finer than a millisecond', () => {
    const fixture = new SessionFixture({ limits: { turnBytes: 10 } })
    const peer = fixture.attach()
    fixture.output(flood(10))
    fixture.nowMs += 0.1
    fixture.output(flood(10))
    expect(peer.receivedOutput()).toHaveLength(10)
    fixture.nowMs += 1
    fixture.output(flood(1))
    expect(peer.receivedOutput()).toHaveLength(10)
  })

  test('[W7] sends pongs and input acks before output', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach({ hello: { window: 2 } })
    fixture.output('abcd')
    peer.received()
    peer.sendInput('in')
    fixture.settle(2)
    fixture.nowMs += 20
    peer.ack(2)
    peer.sendMessage({ type: 'ping', id: 4 })
    const types = peer.received().map(({ type }) => type)
    expect(types.indexOf('ack')).toBeLessThan(types.indexOf('stdout'))
  })
})

describe('a blocked connection', () => {
  test('[W8] leaves output in the log until it drains', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    peer.received()
    peer.block()
    fixture.output('abc')
    expect(peer.received()).toEqual([])
    peer.drain()
    expect(peer.receivedOutput()).toBe('abc')
  })

  test('[W8] gets one pong for a thousand pings', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    peer.received()
    peer.block()
    for (let id = 1; id <= 1000; id += 1) peer.sendMessage({ type: 'ping', id })
    expect(peer.received()).toEqual([])
    peer.drain()
    expect(peer.received()).toEqual([{ type: 'pong', id: 1000 }])
  })

  test('[W8] gets the newest presence, size and input ack only', () => {
    const fixture = new SessionFixture({ mode: 'pty' })
    const driver = fixture.attach({ identity: 1 })
    const viewer = joinTerminal(fixture)
    viewer.received()
    viewer.block()
    for (let step = 1; step <= 500; step += 1) {
      driver.sendMessage({ type: 'resize', cols: 100 + step, rows: 24, seq: step, at: 0 })
      fixture.attach({ identity: 100 + step, role: 'viewer' }).sendMessage({ type: 'detach' })
      fixture.wait(60)
    }
    expect(viewer.received()).toEqual([])
    expect(fixture.session.nextTickMs(fixture.nowMs)).toBeGreaterThan(fixture.nowMs)
    viewer.drain()
    expect(viewer.received().map(({ type }) => type)).toEqual(['presence', 'resized'])
  })

  test('[B7] causes no ticks for messages that it cannot receive', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    peer.sendInput('abc')
    fixture.settle(3)
    peer.block()
    fixture.attach({ identity: 9, role: 'viewer' })
    fixture.wait(1_000)
    expect(fixture.session.nextTickMs(fixture.nowMs)).toBeGreaterThan(fixture.nowMs + 1_000)
  })
})

describe('an attachment behind the log', () => {
  const limits = { logBytes: 10, window: { startBytes: 4, minBytes: 1, maxBytes: 4 } }

  test('[F2] of a pipe gets one gap and continues after it', () => {
    const fixture = new SessionFixture({ limits })
    const driver = fixture.attach({ identity: 1, hello: { window: 1024 } })
    const viewer = fixture.attach({ identity: 2, role: 'viewer' })
    for (let offset = 0; offset < 100; offset += 4) {
      fixture.output('abcd')
      driver.ack(offset + 4)
    }
    viewer.ack(4)
    expect(viewer.received('gap')).toEqual([{ type: 'gap', from: 4, to: 90 }])
    viewer.ack(90)
    expect(viewer.receivedOutput()).toBe('cdab')
  })

  test('[F2] that does not read gets nothing more, however much is trimmed', () => {
    const fixture = new SessionFixture({ limits })
    const driver = fixture.attach({ identity: 1 })
    const viewer = fixture.attach({ identity: 2, role: 'viewer' })
    fixture.output('abcd')
    driver.ack(4)
    viewer.received()
    for (let offset = 4; offset < 4_000; offset += 4) {
      fixture.output('abcd')
      driver.ack(offset + 4)
    }
    expect(viewer.received('gap', 'stdout')).toEqual([])
  })

  test('[F3] of a terminal gets one snapshot at a time', () => {
    const fixture = new SessionFixture({ mode: 'pty', limits })
    const driver = fixture.attach({ identity: 1 })
    const viewer = joinTerminal(fixture)
    fixture.takeEffects()
    viewer.received()
    for (let offset = 0; offset < 100; offset += 4) {
      fixture.output('abcd')
      driver.ack(offset + 4)
    }
    expect(fixture.takeEffects().filter((effect) => effect.do === 'snapshot')).toEqual([])
    viewer.ack(4)
    for (let step = 0; step < 3; step += 1) {
      fixture.output('abcd')
      driver.ack(fixture.session.log.end)
    }
    expect(fixture.takeEffects().filter((effect) => effect.do === 'snapshot')).toHaveLength(1)
    fixture.render(viewer.id)
    expect(viewer.received('gap', 'snapshot')).toMatchObject([{ type: 'snapshot', at: 112 }])
  })
})

describe('a snapshot', () => {
  test('[S1] is what a new attachment of a running terminal starts with', () => {
    const fixture = new SessionFixture({ mode: 'pty' })
    fixture.attach({ identity: 1 })
    fixture.output('old\u001b[6n')
    fixture.takeEffects()
    const late = fixture.attach({ identity: 2 })
    expect(fixture.takeEffects()).toEqual([{ do: 'snapshot', attachment: late.id }])
    expect(late.receivedOutput()).toBe('')
    fixture.render(late.id)
    expect(late.received()).toEqual([
      { type: 'snapshot', at: 7, cols: 80, rows: 24, bytes: 8, exact: true },
      { type: 'screen', text: 'screen@7' },
    ])
  })

  test('[S2] is followed by the bytes after it', () => {
    const fixture = new SessionFixture({ mode: 'pty' })
    fixture.attach({ identity: 1 })
    fixture.output('old')
    const late = joinTerminal(fixture, 2)
    late.ack(3)
    late.received()
    fixture.output('new')
    expect(late.received()).toEqual([{ type: 'stdout', text: 'new' }])
  })

  test('[S4] that was incomplete is requested again after a reconnect', () => {
    const fixture = new SessionFixture({ mode: 'pty' })
    fixture.attach({ identity: 1 })
    fixture.output('old')
    const late = joinTerminal(fixture, 2)
    late.disconnect()
    fixture.takeEffects()
    fixture.attach({ identity: 2, hello: { resuming: true, received: 0 } })
    expect(fixture.takeEffects()).toEqual([{ do: 'snapshot', attachment: 'a2' }])
  })

  test('[S4] that replaces a gap is requested again if the connection was lost before it was complete', () => {
    const limits = { logBytes: 10, window: { startBytes: 4, minBytes: 1, maxBytes: 4 } }
    const fixture = new SessionFixture({ mode: 'pty', limits })
    const driver = fixture.attach({ identity: 1 })
    const viewer = joinTerminal(fixture, 2)
    for (let offset = 0; offset < 40; offset += 4) {
      fixture.output('abcd')
      driver.ack(offset + 4)
    }
    viewer.ack(4)
    fixture.render(viewer.id)
    // Nothing of it has arrived: the client still holds 4 bytes.
    viewer.disconnect()
    fixture.takeEffects()
    const back = fixture.attach({ identity: 2, hello: { resuming: true, received: 4 } })
    expect(fixture.takeEffects()).toEqual([{ do: 'snapshot', attachment: back.id }])
  })

  test('[S5] that is not exact makes the program repaint', () => {
    const fixture = new SessionFixture({ mode: 'pty' })
    fixture.attach({ identity: 1 })
    const late = fixture.attach({ identity: 2 })
    fixture.takeEffects()
    fixture.render(late.id, false)
    expect(late.received('snapshot')).toMatchObject([{ exact: false }])
    expect(fixture.takeEffects()).toEqual([{ do: 'repaint' }])
  })

  test('[S6] delays output while it is rendered, and pauses the process for a driver', () => {
    const fixture = new SessionFixture({ mode: 'pty' })
    fixture.attach({ identity: 1 }).sendMessage({ type: 'detach' })
    fixture.takeEffects()
    const late = fixture.attach({ identity: 2 })
    expect(fixture.takeEffects()).toContainEqual({ do: 'pause' })
    fixture.output('abc')
    expect(late.receivedOutput()).toBe('')
    fixture.render(late.id)
    expect(fixture.takeEffects()).toContainEqual({ do: 'resume' })
  })

  test('[S6] that was not requested, or is for a detached attachment, is ignored', () => {
    const fixture = new SessionFixture({ mode: 'pty' })
    const driver = fixture.attach({ identity: 1 })
    driver.received()
    fixture.render(driver.id)
    fixture.render('a77')
    const late = fixture.attach({ identity: 2 })
    const { id } = late
    late.disconnect()
    fixture.render(id)
    expect(driver.received('snapshot')).toEqual([])
    expect(late.received('snapshot')).toEqual([])
  })

  test('[S6] larger than a frame is sent in several', () => {
    const fixture = new SessionFixture({ mode: 'pty' })
    fixture.attach({ identity: 1 })
    const late = fixture.attach({ identity: 2 })
    const data = new Uint8Array(150_000).fill(65)
    fixture.run(fixture.session.snapshotReady(late.id, { at: 0, cols: 80, rows: 24, data, exact: true }, 0))
    const received = late.received('snapshot', 'screen')
    expect(received[0]).toMatchObject({ bytes: 150_000 })
    expect(received.slice(1).map((one) => ('text' in one ? one.text.length : 0))).toEqual([
      65_536, 65_536, 18_928,
    ])
  })
})

describe('sizes of the terminal', () => {
  test('[S8] that changed while a snapshot was rendered are sent after it', () => {
    const fixture = new SessionFixture({ mode: 'pty' })
    const driver = fixture.attach({ identity: 1 })
    fixture.output('ab')
    const late = fixture.attach({ identity: 2, rights: { authority: 'viewer' } })
    driver.sendMessage({ type: 'resize', cols: 90, rows: 30, seq: 1, at: 0 })
    const data = new Uint8Array(1)
    fixture.run(fixture.session.snapshotReady(late.id, { at: 2, cols: 80, rows: 24, data, exact: true }, 0))
    expect(late.received('snapshot', 'resized')).toMatchObject([
      { type: 'snapshot', at: 2, cols: 80, rows: 24 },
      { type: 'resized', at: 2, cols: 90, rows: 30 },
    ])
  })

  test('[S8] are sent between the bytes where they changed', () => {
    const fixture = new SessionFixture({ mode: 'pty' })
    const driver = fixture.attach({ identity: 1 })
    const viewer = joinTerminal(fixture)
    viewer.received()
    viewer.block()
    fixture.output('ab')
    driver.sendMessage({ type: 'resize', cols: 90, rows: 30, seq: 1, at: 0 })
    fixture.output('cd')
    viewer.drain()
    expect(viewer.received('stdout', 'resized')).toEqual([
      { type: 'stdout', text: 'ab' },
      { type: 'resized', at: 2, cols: 90, rows: 30 },
      { type: 'stdout', text: 'cd' },
    ])
  })

  test('[S8] are sent again after a resume from before the change', () => {
    const fixture = new SessionFixture({ mode: 'pty' })
    const driver = fixture.attach({ identity: 1 })
    fixture.output('ab')
    driver.sendMessage({ type: 'resize', cols: 90, rows: 30, seq: 1, at: 0 })
    fixture.output('cd')
    driver.disconnect()
    const back = fixture.attach({ identity: 1, hello: { resuming: true, received: 1 } })
    expect(back.received('welcome', 'stdout', 'resized')).toMatchObject([
      { type: 'welcome', cols: 80, rows: 24 },
      { type: 'stdout', text: 'b' },
      { type: 'resized', at: 2, cols: 90, rows: 30 },
      { type: 'stdout', text: 'cd' },
    ])
  })
})

describe('a limit per second', () => {
  test('[W9] spreads output over time and loses nothing', () => {
    const fixture = new SessionFixture({ limits: { outputBytesPerSecond: 1000 } })
    const peer = fixture.attach()
    fixture.output(flood(2000))
    let got = peer.receivedOutput().length
    expect(got).toBe(250)
    fixture.wait(1000)
    got += peer.receivedOutput().length
    expect(got).toBeGreaterThanOrEqual(1_200)
    expect(got).toBeLessThanOrEqual(1_251)
    fixture.wait(1000)
    got += peer.receivedOutput().length
    expect(got).toBe(2000)
  })

  test('[W9] continues by ticks, however late they are', () => {
    const fixture = new SessionFixture({ limits: { outputBytesPerSecond: 1000 } })
    const peer = fixture.attach()
    fixture.output(flood(2000))
    peer.receivedOutput()
    fixture.nowMs = 10
    expect(fixture.session.nextTickMs(fixture.nowMs)).toBe(10)
    fixture.run(fixture.session.tick(fixture.nowMs))
    expect(peer.receivedOutput().length).toBe(10)
    peer.disconnect()
    // No attachment is left that could receive output, so no tick is scheduled.
    expect(fixture.session.nextTickMs(fixture.nowMs + 100)).toBeGreaterThan(1_000)
  })

  test('[W9] is shared by attachments, also when they resume; the driver is served first', () => {
    const fixture = new SessionFixture({ limits: { outputBytesPerSecond: 1000 } })
    const rights = { bandwidth: new TokenBucket(1000, 250, 0) }
    const driver = fixture.attach({ identity: 1, rights })
    const viewer = fixture.attach({ identity: 2, rights: { ...rights, authority: 'viewer' } })
    fixture.output(flood(1000))
    expect([driver.receivedOutput().length, viewer.receivedOutput().length]).toEqual([250, 0])
    fixture.wait(750)
    expect(driver.receivedOutput().length).toBe(750)
    viewer.disconnect()
    const back = fixture.attach({ identity: 2, rights, hello: { resuming: true } })
    expect(back.receivedOutput().length).toBe(0)
    fixture.wait(1000)
    expect(back.receivedOutput().length).toBe(1000)
  })
})
