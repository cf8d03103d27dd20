import { describe, expect, test } from 'bun:test'
import { Bench } from './server-session.fixture.ts'

describe('the exit', () => {
  test('[X1] comes behind the last byte, with the end of the output', () => {
    const bench = new Bench()
    const peer = bench.attach({ hello: { window: 3 } })
    bench.output('abcdef')
    bench.exit(7)
    expect(peer.hears('stdout', 'exit').at(-1)).toMatchObject({ type: 'stdout' })
    peer.acks(3)
    expect(peer.hears('stdout', 'exit').at(-1)).toEqual({
      type: 'exit',
      code: 7,
      signal: null,
      truncated: false,
      outputEnd: 6,
    })
  })

  test('[X1] is told to every attachment in its own time', () => {
    const bench = new Bench()
    const driver = bench.attach({ identity: 1 })
    const viewer = bench.attach({ identity: 2, role: 'viewer', hello: { window: 1 } })
    bench.output('ab')
    bench.exit()
    expect(driver.hears('exit')).toHaveLength(1)
    expect(viewer.hears('exit')).toHaveLength(0)
    viewer.acks(1)
    expect(viewer.hears('exit')).toHaveLength(1)
  })

  test('[X4] closes the connection once everything was consumed, and once', () => {
    const bench = new Bench()
    const peer = bench.attach()
    bench.output('ab')
    bench.exit()
    expect(peer.hears('closed')).toEqual([])
    peer.acks(2)
    expect(peer.hears('closed')).toEqual([{ type: 'closed', code: 1000, reason: '' }])
  })

  test('[X4] without any output closes at once', () => {
    const bench = new Bench()
    const peer = bench.attach()
    bench.exit(1)
    expect(peer.hears('exit', 'closed').map(({ type }) => type)).toEqual(['exit', 'closed'])
  })

  test('[X3] is kept for those who come late', () => {
    const bench = new Bench()
    bench.attach({ identity: 1 })
    bench.output('abc')
    bench.exit(4)
    const late = bench.attach({ identity: 2, role: 'viewer' })
    expect(late.hears('stdout', 'exit')).toEqual([
      { type: 'stdout', text: 'abc' },
      { type: 'exit', code: 4, signal: null, truncated: false, outputEnd: 3 },
    ])
  })

  test('[X3] waits for the screen of those who come late to a terminal', () => {
    const bench = new Bench({ mode: 'pty' })
    bench.attach({ identity: 1 })
    bench.output('abc')
    bench.exit(4)
    const late = bench.attach({ identity: 2 })
    expect(late.hears('exit')).toEqual([])
    bench.render(late.id)
    expect(late.hears('snapshot', 'exit').map(({ type }) => type)).toEqual(['snapshot', 'exit'])
  })

  test('[X5] by a signal has no code, and says when output was cut', () => {
    const bench = new Bench()
    const peer = bench.attach()
    bench.run(bench.session.ended({ code: null, signal: 'SIGSEGV', truncated: true }, 0))
    expect(peer.hears('exit')).toEqual([
      { type: 'exit', code: null, signal: 'SIGSEGV', truncated: true, outputEnd: 0 },
    ])
  })

  test('[X1] is told once, and nothing of the process counts behind it', () => {
    const bench = new Bench()
    const peer = bench.attach()
    bench.output('a')
    bench.exit(1)
    bench.exit(2)
    bench.output('late')
    expect(peer.hears('stdout', 'exit')).toMatchObject([
      { type: 'stdout', text: 'a' },
      { type: 'exit', code: 1 },
    ])
  })

  test.each([
    ['command_not_found', 127],
    ['command_not_executable', 126],
    ['spawn_failed', 126],
  ] as const)('[X6] follows %s as %d', (code, exit) => {
    const bench = new Bench()
    const peer = bench.attach()
    peer.hears()
    bench.run(bench.session.startFailed({ code, message: 'Cannot start "x"' }, 0))
    expect(peer.hears('error', 'exit')).toMatchObject([
      { type: 'error', code, fatal: false },
      { type: 'exit', code: exit, outputEnd: 0 },
    ])
  })

  test('[X6] of a process that was not started is nothing', () => {
    const bench = new Bench()
    expect(bench.session.startFailed({ code: 'spawn_failed', message: 'x' }, 0)).toEqual([])
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
  ] as const)('[P3] of %j is told to a plain client last, before close 1000', (exit, told) => {
    const bench = new Bench({ keepSeconds: 0 })
    const plain = bench.connect({ dialect: 'plain' })
    bench.output('abc')
    bench.run(bench.session.ended({ ...exit, truncated: false }, 0))
    expect(plain.hears()).toEqual([
      { type: 'stdout', text: 'abc' },
      told,
      { type: 'closed', code: 1000, reason: '' },
    ])
  })

  test('[P3] waits for a plain client that takes nothing', () => {
    const bench = new Bench({ keepSeconds: 0 })
    const plain = bench.connect({ dialect: 'plain' })
    plain.block()
    bench.output('abc')
    bench.exit()
    expect(plain.hears()).toEqual([])
    plain.drain()
    expect(plain.hears().map(({ type }) => type)).toEqual(['stdout', 'exit', 'closed'])
  })
})
