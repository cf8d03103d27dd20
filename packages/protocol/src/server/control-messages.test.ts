import { describe, expect, test } from 'bun:test'
import { PLAIN_INPUT_BYTES } from '../limits.ts'
import { SessionFixture } from './server-session.fixture.ts'

const bytes = (content: string): Uint8Array => new TextEncoder().encode(content)

describe('input', () => {
  test('[I6] and control messages are applied in the order they were sent', () => {
    const fixture = new SessionFixture({ mode: 'pty' })
    const peer = fixture.attach()
    fixture.takeEffects()
    peer.sendInput('ab')
    peer.sendMessage({ type: 'resize', cols: 90, rows: 30, seq: 1, at: 2 })
    peer.sendInput('c')
    peer.sendMessage({ type: 'signal', signal: 'SIGUSR1', seq: 2, at: 3 })
    peer.sendMessage({ type: 'eof', seq: 3, at: 3 })
    expect(fixture.takeEffects()).toEqual([
      { do: 'write', bytes: bytes('ab') },
      { do: 'resize', cols: 90, rows: 30 },
      { do: 'write', bytes: bytes('c') },
      { do: 'signal', signal: 'SIGUSR1' },
      { do: 'closeInput' },
    ])
  })

  test('[I2] is acknowledged when it was written, not when it was accepted', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    peer.received()
    peer.sendInput('abcd')
    fixture.wait(50)
    expect(peer.received('ack')).toEqual([])
    fixture.settle(3)
    fixture.wait(50)
    expect(peer.received('ack')).toEqual([{ type: 'ack', input: 3, seq: 0 }])
  })

  test('[I10] is acknowledged after 10 ms, or at once from a quarter of the window on', () => {
    const fixture = new SessionFixture({ limits: { inputWindowBytes: 100 } })
    const peer = fixture.attach()
    peer.received()
    peer.sendInput('x'.repeat(50))
    fixture.settle(24)
    expect(peer.received('ack')).toEqual([])
    fixture.wait(10)
    expect(peer.received('ack')).toHaveLength(1)
    fixture.settle(25)
    expect(peer.received('ack')).toEqual([{ type: 'ack', input: 49, seq: 0 }])
  })

  test('[I3] within the window is accepted, one byte more is refused', () => {
    const fixture = new SessionFixture({ limits: { inputWindowBytes: 5 } })
    const peer = fixture.attach()
    peer.sendInput('abcde')
    fixture.settle(1)
    peer.sendInput('f')
    expect(peer.received('error')).toEqual([])
    peer.sendInput('g')
    expect(peer.refusal()).toEqual({ error: 'bad_frame', close: 4402 })
  })

  test('[I1] offsets are separate for each writer', () => {
    const fixture = new SessionFixture()
    const driver = fixture.attach({ identity: 1 })
    const other = fixture.attach({ identity: 2, role: 'collaborator' })
    driver.sendInput('aaa')
    other.sendInput('bb')
    driver.sendInput('a')
    fixture.settle(4)
    fixture.wait(20)
    expect(driver.received('ack').at(-1)).toMatchObject({ input: 3 })
    expect(other.received('ack').at(-1)).toMatchObject({ input: 1 })
    fixture.settle(2)
    fixture.wait(20)
    expect(driver.received('ack').at(-1)).toMatchObject({ input: 4 })
    expect(other.received('ack').at(-1)).toMatchObject({ input: 2 })
  })

  test('[I1] survives the reconnects of its writer', () => {
    const fixture = new SessionFixture()
    fixture.attach({ identity: 1 }).disconnect()
    const back = fixture.attach({ identity: 1, hello: { resuming: true } })
    back.sendInput('abc')
    back.disconnect()
    expect(fixture.attach({ identity: 1, hello: { resuming: true } }).received('welcome')).toMatchObject([
      { input: { at: 3 } },
    ])
  })

  test('[I1] of a detached writer is settled', () => {
    const fixture = new SessionFixture()
    const other = fixture.attach({ identity: 1, role: 'collaborator' })
    const driver = fixture.attach({ identity: 2 })
    other.sendInput('abc')
    other.sendMessage({ type: 'detach' })
    driver.sendInput('x')
    driver.received()
    fixture.settle(4)
    fixture.wait(20)
    expect(driver.received('ack')).toEqual([{ type: 'ack', input: 1, seq: 0 }])
  })

  test('[I2] settled beyond what was written has no effect', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    peer.sendInput('ab')
    fixture.settle(1_000)
    fixture.wait(20)
    expect(peer.received('ack').at(-1)).toMatchObject({ input: 2 })
  })

  test('[I1] of thousands of tiny pieces by two writers is settled in time', () => {
    const fixture = new SessionFixture()
    const one = fixture.attach({ identity: 1 })
    const two = fixture.attach({ identity: 2, role: 'collaborator' })
    for (let piece = 0; piece < 50_000; piece += 1) {
      fixture.nowMs += 1
      one.sendInput('a')
      two.sendInput('b')
    }
    for (let piece = 0; piece < 100_000; piece += 1) fixture.settle(1)
    expect(one.attachment?.inputSettled).toBe(50_000)
    expect(two.attachment?.inputSettled).toBe(50_000)
  })
})

describe('a control message', () => {
  test('[I4] that was seen before is skipped', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    fixture.takeEffects()
    for (let times = 0; times < 3; times += 1)
      peer.sendMessage({ type: 'signal', signal: 'SIGINT', seq: 1, at: 0 })
    expect(fixture.takeEffects()).toEqual([{ do: 'signal', signal: 'SIGINT' }])
    expect(peer.received('error')).toEqual([])
  })

  test.each([
    [2, 0],
    [1, 1],
    [Number.MAX_SAFE_INTEGER, 0],
  ])('[I5] with number %d at %d is a desync', (seq, at) => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    fixture.takeEffects()
    peer.sendMessage({ type: 'eof', seq, at })
    expect(peer.refusal()).toEqual({ error: 'desync', close: 4432 })
    expect(fixture.takeEffects()).toEqual([])
  })

  test('[I2] is acknowledged by its number', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    peer.received()
    peer.sendMessage({ type: 'signal', signal: 'SIGINT', seq: 1, at: 0 })
    fixture.wait(10)
    expect(peer.received('ack')).toEqual([{ type: 'ack', input: 0, seq: 1 }])
  })

  test.each(['SIGNOPE', 'SIGRTMIN'])('[I12] cannot send %s', (signal) => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    fixture.takeEffects()
    peer.sendMessage({ type: 'signal', signal, seq: 1, at: 0 })
    expect(peer.refusal().error).toBe('bad_frame')
    expect(fixture.takeEffects()).toEqual([])
  })

  test('[I4] after the exit has no effect', () => {
    const fixture = new SessionFixture({ mode: 'pty' })
    const peer = fixture.attach()
    fixture.output('x')
    fixture.exit()
    fixture.takeEffects()
    peer.sendMessage({ type: 'signal', signal: 'SIGKILL', seq: 1, at: 0 })
    peer.sendMessage({ type: 'eof', seq: 2, at: 0 })
    peer.sendMessage({ type: 'resize', cols: 1, rows: 1, seq: 3, at: 0 })
    expect(fixture.takeEffects()).toEqual([])
    expect(peer.received('error')).toEqual([])
  })
})

describe('a resize', () => {
  test('[T4] to the current size has no effect', () => {
    const fixture = new SessionFixture({ mode: 'pty' })
    const peer = fixture.attach()
    fixture.takeEffects()
    peer.sendMessage({ type: 'resize', cols: 80, rows: 24, seq: 1, at: 0 })
    peer.sendMessage({ type: 'resize', cols: 81, rows: 24, seq: 2, at: 0 })
    expect(fixture.takeEffects()).toEqual([{ do: 'resize', cols: 81, rows: 24 }])
  })

  test('[T6] of a pipe has no effect', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    fixture.takeEffects()
    peer.sendMessage({ type: 'resize', cols: 81, rows: 24, seq: 1, at: 0 })
    expect(fixture.takeEffects()).toEqual([])
  })

  test('[T5] is taken from the hello of a new driver, not of a viewer', () => {
    const fixture = new SessionFixture({ mode: 'pty' })
    fixture.attach({ identity: 1 })
    fixture.takeEffects()
    fixture.attach({ identity: 2, role: 'viewer', hello: { cols: 50, rows: 20 } })
    expect(fixture.takeEffects().filter((effect) => effect.do === 'resize')).toEqual([])
    fixture.attach({ identity: 3, rights: { take: true }, hello: { cols: 60, rows: 20 } })
    expect(fixture.takeEffects()).toContainEqual({ do: 'resize', cols: 60, rows: 20 })
  })
})

describe('when the process no longer reads input', () => {
  test('[I8] writers are sent the offset before the ack', () => {
    const fixture = new SessionFixture()
    const driver = fixture.attach({ identity: 1 })
    const viewer = fixture.attach({ identity: 2, role: 'viewer' })
    driver.sendInput('abcdef')
    fixture.settle(2)
    driver.received()
    fixture.run(fixture.session.inputClosed(fixture.nowMs))
    fixture.wait(20)
    expect(driver.received('stdinClosed', 'ack')).toEqual([
      { type: 'stdinClosed', at: 2 },
      { type: 'ack', input: 6, seq: 0 },
    ])
    expect(viewer.received('stdinClosed')).toEqual([])
  })

  test('[I8] later input is settled without being written, and a reconnecting writer is notified again', () => {
    const fixture = new SessionFixture()
    const driver = fixture.attach({ identity: 1 })
    fixture.run(fixture.session.inputClosed(fixture.nowMs))
    fixture.run(fixture.session.inputClosed(fixture.nowMs))
    expect(driver.received('stdinClosed')).toHaveLength(1)
    fixture.takeEffects()
    driver.sendInput('abc')
    fixture.wait(20)
    expect(fixture.takeEffects()).toEqual([])
    expect(driver.received('ack').at(-1)).toMatchObject({ input: 3 })
    driver.disconnect()
    const back = fixture.attach({ identity: 1, hello: { resuming: true } })
    expect(back.received('stdinClosed')).toEqual([{ type: 'stdinClosed', at: 0 }])
  })

  test('[I8] after an exit, a reconnecting writer is sent the offset that was read, not the accepted one', () => {
    const fixture = new SessionFixture()
    const driver = fixture.attach({ identity: 1 })
    driver.sendInput('abcdef')
    fixture.settle(2)
    fixture.output('x')
    fixture.exit()
    driver.disconnect()
    const back = fixture.attach({ identity: 1, hello: { resuming: true } })
    expect(back.received('stdinClosed')).toEqual([{ type: 'stdinClosed', at: 2 }])
  })

  test('[I8] an attachment that may write later is notified at its first write', () => {
    const fixture = new SessionFixture()
    fixture.attach({ identity: 1 })
    const viewer = fixture.attach({ identity: 2 })
    fixture.run(fixture.session.inputClosed(fixture.nowMs))
    viewer.sendMessage({ type: 'take' })
    viewer.sendInput('x')
    expect(viewer.received('stdinClosed')).toEqual([{ type: 'stdinClosed', at: 0 }])
  })
})

describe('input that a terminal refuses', () => {
  test('[T1] is reported to its writer only, which stays connected', () => {
    const fixture = new SessionFixture({ mode: 'pty' })
    const driver = fixture.attach({ identity: 1 })
    const other = fixture.attach({ identity: 2, role: 'collaborator' })
    driver.received()
    other.sendInput('long')
    fixture.run(fixture.session.inputRefused({ code: 'line_too_long', message: 'Too long' }))
    fixture.settle(4)
    expect(other.received('error')).toEqual([
      { type: 'error', code: 'line_too_long', message: 'Too long', fatal: false },
    ])
    expect(driver.received('error')).toEqual([])
    fixture.wait(20)
    expect(other.received('ack').at(-1)).toMatchObject({ input: 4 })
  })

  test('[T1] of a detached writer is reported to no one', () => {
    const fixture = new SessionFixture({ mode: 'pty' })
    expect(fixture.session.inputRefused({ code: 'line_too_long', message: 'x' })).toEqual([])
    const driver = fixture.attach()
    driver.sendInput('long')
    driver.disconnect()
    fixture.run(fixture.session.inputRefused({ code: 'line_too_long', message: 'x' }))
    expect(driver.received('error')).toEqual([])
  })
})

describe('a plain client', () => {
  test('[P2] resizes, signals and ends input without sequence numbers', () => {
    const fixture = new SessionFixture({ mode: 'pty', keepSeconds: 0 })
    const peer = fixture.connect({ dialect: 'plain' })
    fixture.takeEffects()
    peer.sendMessage({ type: 'resize', cols: 90, rows: 30 })
    peer.sendMessage({ type: 'signal', signal: 'SIGINT' })
    peer.sendMessage({ type: 'eof' })
    expect(fixture.takeEffects()).toEqual([
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
  ])('[P8] that sends %s gets the error and is closed', (wire) => {
    const fixture = new SessionFixture({ keepSeconds: 0 })
    const peer = fixture.connect({ dialect: 'plain' })
    peer.sendRaw(wire)
    expect(peer.received()).toEqual([
      { type: 'error', code: 'bad_frame', message: 'Cannot decode frame' },
      { type: 'closed', code: 4402, reason: 'bad_frame' },
    ])
  })

  test('[P10] that sends far more than the process reads is closed', () => {
    const fixture = new SessionFixture({ keepSeconds: 0 })
    const peer = fixture.connect({ dialect: 'plain' })
    const megabyte = new Uint8Array(1024 * 1024)
    for (let sent = 0; sent < PLAIN_INPUT_BYTES; sent += megabyte.byteLength) peer.sendRaw(megabyte)
    expect(peer.received()).toEqual([])
    peer.sendInput('x')
    expect(peer.refusal().error).toBe('input_overflow')
  })
})

describe('a session that shows a pane', () => {
  test('[T5] requests a size, and announces the one that its process has', () => {
    const fixture = new SessionFixture({ mode: 'pty', sizeFrom: 'process' })
    const peer = fixture.attach()
    fixture.takeEffects()
    fixture.attach({ hello: { cols: 70, rows: 20 } })
    expect(fixture.takeEffects().filter((effect) => effect.do === 'resize')).toEqual([])
    peer.sendMessage({ type: 'resize', cols: 90, rows: 30, seq: 1, at: 0 })
    expect(fixture.takeEffects()).toEqual([{ do: 'resize', cols: 90, rows: 30 }])
    expect(peer.received('resized')).toEqual([])
    fixture.output('abc')
    fixture.run(fixture.session.resizedByProcess(85, 30, fixture.nowMs))
    expect(peer.received('resized')).toEqual([{ type: 'resized', at: 3, cols: 85, rows: 30 }])
  })

  test('[P11] passes on what a plain client types into another pane', () => {
    const message = { type: 'stdin', pane: 'left', data: 'npm test\n' } as const
    const pane = new SessionFixture({ mode: 'pty', sizeFrom: 'process' })
    const peer = pane.connect({ dialect: 'plain' })
    pane.takeEffects()
    peer.sendMessage(message)
    expect(pane.takeEffects()).toEqual([{ do: 'writePane', pane: 'left', bytes: bytes('npm test\n') }])
    const other = new SessionFixture({ mode: 'pty' }).connect({ dialect: 'plain' })
    other.sendMessage(message)
    expect(other.refusal()).toEqual({ error: 'bad_frame', close: 4402 })
  })
})
