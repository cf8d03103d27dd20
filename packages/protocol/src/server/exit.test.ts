import { describe, expect, test } from 'bun:test'
import { SessionFixture } from './server-session.fixture.ts'

describe('the exit', () => {
  test('[X1] is sent after the last byte, with the end of the output', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach({ hello: { window: 3 } })
    fixture.output('abcdef')
    fixture.exit(7)
    expect(peer.received('stdout', 'exit').at(-1)).toMatchObject({ type: 'stdout' })
    peer.ack(3)
    expect(peer.received('stdout', 'exit').at(-1)).toEqual({
      type: 'exit',
      code: 7,
      signal: null,
      truncated: false,
      outputEnd: 6,
    })
  })

  test('[X1] is sent to each attachment after its own last byte', () => {
    const fixture = new SessionFixture()
    const driver = fixture.attach({ identity: 1 })
    const viewer = fixture.attach({ identity: 2, role: 'viewer', hello: { window: 1 } })
    fixture.output('ab')
    fixture.exit()
    expect(driver.received('exit')).toHaveLength(1)
    expect(viewer.received('exit')).toHaveLength(0)
    viewer.ack(1)
    expect(viewer.received('exit')).toHaveLength(1)
  })

  test('[X4] closes the connection once, when everything was consumed', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    fixture.output('ab')
    fixture.exit()
    expect(peer.received('closed')).toEqual([])
    peer.ack(2)
    expect(peer.received('closed')).toEqual([{ type: 'closed', code: 1000, reason: '' }])
  })

  test('[X4] without any output closes at once', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    fixture.exit(1)
    expect(peer.received('exit', 'closed').map(({ type }) => type)).toEqual(['exit', 'closed'])
  })

  test('[X3] is stored for later attachments', () => {
    const fixture = new SessionFixture()
    fixture.attach({ identity: 1 })
    fixture.output('abc')
    fixture.exit(4)
    const late = fixture.attach({ identity: 2, role: 'viewer' })
    expect(late.received('stdout', 'exit')).toEqual([
      { type: 'stdout', text: 'abc' },
      { type: 'exit', code: 4, signal: null, truncated: false, outputEnd: 3 },
    ])
  })

  test('[X3] is sent after the snapshot to later attachments of a terminal', () => {
    const fixture = new SessionFixture({ mode: 'pty' })
    fixture.attach({ identity: 1 })
    fixture.output('abc')
    fixture.exit(4)
    const late = fixture.attach({ identity: 2 })
    expect(late.received('exit')).toEqual([])
    fixture.render(late.id)
    expect(late.received('snapshot', 'exit').map(({ type }) => type)).toEqual(['snapshot', 'exit'])
  })

  test('[X5] by a signal has no code, and reports truncated output', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    fixture.run(fixture.session.ended({ code: null, signal: 'SIGSEGV', truncated: true }, 0))
    expect(peer.received('exit')).toEqual([
      { type: 'exit', code: null, signal: 'SIGSEGV', truncated: true, outputEnd: 0 },
    ])
  })

  test('[X1] is sent once, and later process events are ignored', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    fixture.output('a')
    fixture.exit(1)
    fixture.exit(2)
    fixture.output('late')
    expect(peer.received('stdout', 'exit')).toMatchObject([
      { type: 'stdout', text: 'a' },
      { type: 'exit', code: 1 },
    ])
  })

  test.each([
    ['command_not_found', 127],
    ['command_not_executable', 126],
    ['spawn_failed', 126],
  ] as const)('[X6] follows %s as %d', (code, exit) => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    peer.received()
    fixture.run(fixture.session.startFailed({ code, message: 'Cannot start "x"' }, 0))
    expect(peer.received('error', 'exit')).toMatchObject([
      { type: 'error', code, fatal: false },
      { type: 'exit', code: exit, outputEnd: 0 },
    ])
  })

  test('[X6] of a process that was not started has no effect', () => {
    const fixture = new SessionFixture()
    expect(fixture.session.startFailed({ code: 'spawn_failed', message: 'x' }, 0)).toEqual([])
  })

  test.each([
    [
      { code: 5, signal: null },
      { type: 'exit', code: 5 },
    ],
    [
      { code: null, signal: 'SIGKILL' },
      { type: 'exit', code: 137, signal: 'SIGKILL' },
    ],
    [
      { code: null, signal: 'SIGTERM' },
      { type: 'exit', code: 143, signal: 'SIGTERM' },
    ],
  ] as const)('[P3] of %j is sent to a plain client last, before close 1000', (exit, message) => {
    const fixture = new SessionFixture({ keepSeconds: 0 })
    const plain = fixture.connect({ dialect: 'plain' })
    fixture.output('abc')
    fixture.run(fixture.session.ended({ ...exit, truncated: false }, 0))
    expect(plain.received()).toEqual([
      { type: 'stdout', text: 'abc' },
      message,
      { type: 'closed', code: 1000, reason: '' },
    ])
  })

  test('[P3] waits for a plain client that does not read', () => {
    const fixture = new SessionFixture({ keepSeconds: 0 })
    const plain = fixture.connect({ dialect: 'plain' })
    plain.block()
    fixture.output('abc')
    fixture.exit()
    expect(plain.received()).toEqual([])
    plain.drain()
    expect(plain.received().map(({ type }) => type)).toEqual(['stdout', 'exit', 'closed'])
  })
})
