import { describe, expect, test } from 'bun:test'
import { PLAIN_INPUT_BYTES } from '../limits.ts'
import { Bench } from './server-session.fixture.ts'

const bytes = (content: string): Uint8Array => new TextEncoder().encode(content)

describe('input', () => {
  test('[I6] and control messages reach the process in the order they were sent', () => {
    const bench = new Bench({ mode: 'pty' })
    const peer = bench.attach()
    bench.takeEffects()
    peer.sends('ab')
    peer.says({ type: 'resize', cols: 90, rows: 30, seq: 1, at: 2 })
    peer.sends('c')
    peer.says({ type: 'signal', signal: 'SIGUSR1', seq: 2, at: 3 })
    peer.says({ type: 'eof', seq: 3, at: 3 })
    expect(bench.takeEffects()).toEqual([
      { do: 'write', bytes: bytes('ab') },
      { do: 'resize', cols: 90, rows: 30 },
      { do: 'write', bytes: bytes('c') },
      { do: 'signal', signal: 'SIGUSR1' },
      { do: 'closeInput' },
    ])
  })

  test('[I2] is acknowledged when it was written, not when it was accepted', () => {
    const bench = new Bench()
    const peer = bench.attach()
    peer.hears()
    peer.sends('abcd')
    bench.wait(50)
    expect(peer.hears('ack')).toEqual([])
    bench.settle(3)
    bench.wait(50)
    expect(peer.hears('ack')).toEqual([{ type: 'ack', input: 3, seq: 0 }])
  })

  test('[I10] in small pieces is acknowledged after 10 ms, a quarter of the window at once', () => {
    const bench = new Bench({ limits: { inputWindowBytes: 100 } })
    const peer = bench.attach()
    peer.hears()
    peer.sends('x'.repeat(50))
    bench.settle(24)
    expect(peer.hears('ack')).toEqual([])
    bench.wait(10)
    expect(peer.hears('ack')).toHaveLength(1)
    bench.settle(25)
    expect(peer.hears('ack')).toEqual([{ type: 'ack', input: 49, seq: 0 }])
  })

  test('[I3] within the window is taken, one byte more is refused', () => {
    const bench = new Bench({ limits: { inputWindowBytes: 5 } })
    const peer = bench.attach()
    peer.sends('abcde')
    bench.settle(1)
    peer.sends('f')
    expect(peer.hears('error')).toEqual([])
    peer.sends('g')
    expect(peer.refusal()).toEqual({ error: 'bad_frame', close: 4402 })
  })

  test('[I1] offsets of two writers are their own', () => {
    const bench = new Bench()
    const driver = bench.attach({ identity: 1 })
    const other = bench.attach({ identity: 2, role: 'collaborator' })
    driver.sends('aaa')
    other.sends('bb')
    driver.sends('a')
    bench.settle(4)
    bench.wait(20)
    expect(driver.hears('ack').at(-1)).toMatchObject({ input: 3 })
    expect(other.hears('ack').at(-1)).toMatchObject({ input: 1 })
    bench.settle(2)
    bench.wait(20)
    expect(driver.hears('ack').at(-1)).toMatchObject({ input: 4 })
    expect(other.hears('ack').at(-1)).toMatchObject({ input: 2 })
  })

  test('[I1] survives the reconnects of its writer', () => {
    const bench = new Bench()
    bench.attach({ identity: 1 }).cut()
    const back = bench.attach({ identity: 1, hello: { resuming: true } })
    back.sends('abc')
    back.cut()
    expect(bench.attach({ identity: 1, hello: { resuming: true } }).hears('welcome')).toMatchObject([
      { input: { at: 3 } },
    ])
  })

  test('[I1] written by one who has left is settled without harm', () => {
    const bench = new Bench()
    const other = bench.attach({ identity: 1, role: 'collaborator' })
    const driver = bench.attach({ identity: 2 })
    other.sends('abc')
    other.says({ type: 'detach' })
    driver.sends('x')
    driver.hears()
    bench.settle(4)
    bench.wait(20)
    expect(driver.hears('ack')).toEqual([{ type: 'ack', input: 1, seq: 0 }])
  })

  test('[I2] settled beyond what was written changes nothing', () => {
    const bench = new Bench()
    const peer = bench.attach()
    peer.sends('ab')
    bench.settle(1_000)
    bench.wait(20)
    expect(peer.hears('ack').at(-1)).toMatchObject({ input: 2 })
  })

  test('[I1] of thousands of tiny pieces by two writers is settled in time', () => {
    const bench = new Bench()
    const one = bench.attach({ identity: 1 })
    const two = bench.attach({ identity: 2, role: 'collaborator' })
    for (let piece = 0; piece < 50_000; piece += 1) {
      bench.nowMs += 1
      one.sends('a')
      two.sends('b')
    }
    for (let piece = 0; piece < 100_000; piece += 1) bench.settle(1)
    expect(one.attachment?.inputSettled).toBe(50_000)
    expect(two.attachment?.inputSettled).toBe(50_000)
  })
})

describe('a control message', () => {
  test('[I4] that was seen before is skipped', () => {
    const bench = new Bench()
    const peer = bench.attach()
    bench.takeEffects()
    for (let times = 0; times < 3; times += 1) peer.says({ type: 'signal', signal: 'SIGINT', seq: 1, at: 0 })
    expect(bench.takeEffects()).toEqual([{ do: 'signal', signal: 'SIGINT' }])
    expect(peer.hears('error')).toEqual([])
  })

  test.each([
    [2, 0],
    [1, 1],
    [Number.MAX_SAFE_INTEGER, 0],
  ])('[I5] with number %d at %d is out of step', (seq, at) => {
    const bench = new Bench()
    const peer = bench.attach()
    bench.takeEffects()
    peer.says({ type: 'eof', seq, at })
    expect(peer.refusal()).toEqual({ error: 'desync', close: 4432 })
    expect(bench.takeEffects()).toEqual([])
  })

  test('[I2] is acknowledged by its number', () => {
    const bench = new Bench()
    const peer = bench.attach()
    peer.hears()
    peer.says({ type: 'signal', signal: 'SIGINT', seq: 1, at: 0 })
    bench.wait(10)
    expect(peer.hears('ack')).toEqual([{ type: 'ack', input: 0, seq: 1 }])
  })

  test.each(['SIGNOPE', 'SIGRTMIN'])('[I12] cannot send %s', (signal) => {
    const bench = new Bench()
    const peer = bench.attach()
    bench.takeEffects()
    peer.says({ type: 'signal', signal, seq: 1, at: 0 })
    expect(peer.refusal().error).toBe('bad_frame')
    expect(bench.takeEffects()).toEqual([])
  })

  test('[I4] after the exit reaches nothing', () => {
    const bench = new Bench({ mode: 'pty' })
    const peer = bench.attach()
    bench.output('x')
    bench.exit()
    bench.takeEffects()
    peer.says({ type: 'signal', signal: 'SIGKILL', seq: 1, at: 0 })
    peer.says({ type: 'eof', seq: 2, at: 0 })
    peer.says({ type: 'resize', cols: 1, rows: 1, seq: 3, at: 0 })
    expect(bench.takeEffects()).toEqual([])
    expect(peer.hears('error')).toEqual([])
  })
})

describe('a resize', () => {
  test('[T4] to the size there is does nothing', () => {
    const bench = new Bench({ mode: 'pty' })
    const peer = bench.attach()
    bench.takeEffects()
    peer.says({ type: 'resize', cols: 80, rows: 24, seq: 1, at: 0 })
    peer.says({ type: 'resize', cols: 81, rows: 24, seq: 2, at: 0 })
    expect(bench.takeEffects()).toEqual([{ do: 'resize', cols: 81, rows: 24 }])
  })

  test('[T6] of a pipe does nothing', () => {
    const bench = new Bench()
    const peer = bench.attach()
    bench.takeEffects()
    peer.says({ type: 'resize', cols: 81, rows: 24, seq: 1, at: 0 })
    expect(bench.takeEffects()).toEqual([])
  })

  test('[T5] comes with a new driver’s hello, not with a viewer’s', () => {
    const bench = new Bench({ mode: 'pty' })
    bench.attach({ identity: 1 })
    bench.takeEffects()
    bench.attach({ identity: 2, role: 'viewer', hello: { cols: 50, rows: 20 } })
    expect(bench.takeEffects().filter((effect) => effect.do === 'resize')).toEqual([])
    bench.attach({ identity: 3, rights: { take: true }, hello: { cols: 60, rows: 20 } })
    expect(bench.takeEffects()).toContainEqual({ do: 'resize', cols: 60, rows: 20 })
  })
})

describe('when nobody reads input any more', () => {
  test('[I8] writers are told from where on, before the ack', () => {
    const bench = new Bench()
    const driver = bench.attach({ identity: 1 })
    const viewer = bench.attach({ identity: 2, role: 'viewer' })
    driver.sends('abcdef')
    bench.settle(2)
    driver.hears()
    bench.run(bench.session.inputClosed(bench.nowMs))
    bench.wait(20)
    expect(driver.hears('stdinClosed', 'ack')).toEqual([
      { type: 'stdinClosed', at: 2 },
      { type: 'ack', input: 6, seq: 0 },
    ])
    expect(viewer.hears('stdinClosed')).toEqual([])
  })

  test('[I8] later input is settled unwritten, and a returning writer is told again', () => {
    const bench = new Bench()
    const driver = bench.attach({ identity: 1 })
    bench.run(bench.session.inputClosed(bench.nowMs))
    bench.run(bench.session.inputClosed(bench.nowMs))
    expect(driver.hears('stdinClosed')).toHaveLength(1)
    bench.takeEffects()
    driver.sends('abc')
    bench.wait(20)
    expect(bench.takeEffects()).toEqual([])
    expect(driver.hears('ack').at(-1)).toMatchObject({ input: 3 })
    driver.cut()
    const back = bench.attach({ identity: 1, hello: { resuming: true } })
    expect(back.hears('stdinClosed')).toEqual([{ type: 'stdinClosed', at: 0 }])
  })

  test('[I8] by an exit, a returning writer is told what was read, not what was accepted', () => {
    const bench = new Bench()
    const driver = bench.attach({ identity: 1 })
    driver.sends('abcdef')
    bench.settle(2)
    bench.output('x')
    bench.exit()
    driver.cut()
    const back = bench.attach({ identity: 1, hello: { resuming: true } })
    expect(back.hears('stdinClosed')).toEqual([{ type: 'stdinClosed', at: 2 }])
  })

  test('[I8] one who may write only later is told at its first write', () => {
    const bench = new Bench()
    bench.attach({ identity: 1 })
    const viewer = bench.attach({ identity: 2 })
    bench.run(bench.session.inputClosed(bench.nowMs))
    viewer.says({ type: 'take' })
    viewer.sends('x')
    expect(viewer.hears('stdinClosed')).toEqual([{ type: 'stdinClosed', at: 0 }])
  })
})

describe('input that a terminal refuses', () => {
  test('[T1] is told to its writer only, who stays', () => {
    const bench = new Bench({ mode: 'pty' })
    const driver = bench.attach({ identity: 1 })
    const other = bench.attach({ identity: 2, role: 'collaborator' })
    driver.hears()
    other.sends('long')
    bench.run(bench.session.inputRefused({ code: 'line_too_long', message: 'Too long' }))
    bench.settle(4)
    expect(other.hears('error')).toEqual([
      { type: 'error', code: 'line_too_long', message: 'Too long', fatal: false },
    ])
    expect(driver.hears('error')).toEqual([])
    bench.wait(20)
    expect(other.hears('ack').at(-1)).toMatchObject({ input: 4 })
  })

  test('[T1] of somebody who is gone is nobody’s', () => {
    const bench = new Bench({ mode: 'pty' })
    expect(bench.session.inputRefused({ code: 'line_too_long', message: 'x' })).toEqual([])
    const driver = bench.attach()
    driver.sends('long')
    driver.cut()
    bench.run(bench.session.inputRefused({ code: 'line_too_long', message: 'x' }))
    expect(driver.hears('error')).toEqual([])
  })
})

describe('a plain client', () => {
  test('[P2] resizes, signals and ends input without numbers', () => {
    const bench = new Bench({ mode: 'pty', keepSeconds: 0 })
    const peer = bench.connect({ dialect: 'plain' })
    bench.takeEffects()
    peer.says({ type: 'resize', cols: 90, rows: 30 })
    peer.says({ type: 'signal', signal: 'SIGINT' })
    peer.says({ type: 'eof' })
    expect(bench.takeEffects()).toEqual([
      { do: 'resize', cols: 90, rows: 30 },
      { do: 'signal', signal: 'SIGINT' },
      { do: 'closeInput' },
    ])
  })

  test.each([
    'hello',
    '{}',
    '{"type":"hello"}',
    '{"type":"ack","output":0}',
    '{"type":"eof","seq":1,"at":0}',
  ])('[P8] that says %s is told why and closed', (wire) => {
    const bench = new Bench({ keepSeconds: 0 })
    const peer = bench.connect({ dialect: 'plain' })
    peer.sendsRaw(wire)
    expect(peer.hears()).toEqual([
      { type: 'error', code: 'bad_frame', message: 'Cannot decode frame' },
      { type: 'closed', code: 4402, reason: 'bad_frame' },
    ])
  })

  test('[P10] that sends far more than the process takes is closed', () => {
    const bench = new Bench({ keepSeconds: 0 })
    const peer = bench.connect({ dialect: 'plain' })
    const megabyte = new Uint8Array(1024 * 1024)
    for (let sent = 0; sent < PLAIN_INPUT_BYTES; sent += megabyte.byteLength) peer.sendsRaw(megabyte)
    expect(peer.hears()).toEqual([])
    peer.sends('x')
    expect(peer.refusal().error).toBe('input_overflow')
  })
})
