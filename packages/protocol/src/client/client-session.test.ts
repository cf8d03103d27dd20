import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ERRORS, isErrorCode } from '../errors.ts'
import { MAX_DATA_BYTES } from '../limits.ts'
import { ClientBench } from './client-session.fixture.ts'

const failure = (bench: ClientBench): string | undefined =>
  bench.status?.is === 'failed' ? bench.status.error.code : undefined

describe('connecting', () => {
  test('[R1] says who it is and that it has nothing', () => {
    const bench = new ClientBench({ name: 'ann', role: 'viewer', env: { TERM: 'xterm' } })
    bench.run(bench.session.start(0))
    expect(bench.connects).toEqual([undefined])
    bench.open()
    expect(bench.takeSent()).toEqual([
      {
        type: 'hello',
        version: 1,
        identity: '00112233445566778899aabbccddeeff',
        attempt: 1,
        resuming: false,
        received: 0,
        window: 1024,
        cols: 80,
        rows: 24,
        role: 'viewer',
        name: 'ann',
        env: expect.objectContaining({ TERM: 'xterm' }),
      },
    ] as never)
  })

  test('[C1] tries again to create until it is welcomed or its time is over', () => {
    const bench = new ClientBench({ connectForMs: 2_000 })
    bench.run(bench.session.start(0))
    for (let times = 0; times < 100 && bench.status?.is !== 'failed'; times += 1) {
      bench.cut()
      bench.wait(1_000)
    }
    expect(failure(bench)).toBe('link_lost')
    expect(bench.connects.every((session) => session === undefined)).toBe(true)
    expect(bench.connects.length).toBeGreaterThan(2)
  })

  test('[R12] gives up an attempt that is not welcomed within 15 s', () => {
    const bench = new ClientBench({ connectForMs: 100_000 })
    bench.run(bench.session.start(0))
    bench.wait(14_999)
    expect(bench.closed).toEqual([])
    bench.wait(1)
    expect(bench.closed).toEqual([1])
    bench.wait(100)
    bench.open()
    bench.wait(15_000)
    expect(bench.closed).toEqual([1, 2])
  })

  test('[R11] stops at once at what will not pass', () => {
    for (const code of Object.keys(ERRORS).filter(isErrorCode)) {
      const bench = new ClientBench()
      bench.run(bench.session.start(0))
      bench.run(bench.session.closed(1, { code, message: code }, 0))
      expect(bench.status?.is).toBe(ERRORS[code].retryable ? 'reconnecting' : 'failed')
    }
  })

  test('[R15] comes back at once when its right is asked for again, and says nothing of it', () => {
    const bench = ClientBench.attached()
    bench.wait(1_000)
    bench.hears({ type: 'error', code: 'reauthorise', message: 'again', fatal: true })
    expect(bench.connects).toEqual([undefined, 's1'])
    expect(bench.status?.is).toBe('attached')
    bench.open()
    expect(bench.takeSent().at(-1)).toMatchObject({ type: 'hello', attempt: 2, resuming: true })
    bench.welcome()
    bench.wait(1_000)
    bench.run(bench.session.closed(bench.attempt, { code: 'reauthorise', message: 'again' }, bench.nowMs))
    expect(bench.connects).toEqual([undefined, 's1', 's1'])
  })

  test('[R15] waits when it is asked again and again', () => {
    const bench = ClientBench.attached()
    bench.wait(999)
    bench.hears({ type: 'error', code: 'reauthorise', message: 'again', fatal: true })
    expect(bench.connects).toEqual([undefined])
    expect(bench.status?.is).toBe('reconnecting')
  })

  test('[R15] fails when the fresh credential is refused', () => {
    const bench = ClientBench.attached()
    bench.wait(1_000)
    bench.hears({ type: 'error', code: 'reauthorise', message: 'again', fatal: true })
    bench.run(bench.session.closed(bench.attempt, { code: 'unauthorized', message: 'no' }, bench.nowMs))
    expect(failure(bench)).toBe('unauthorized')
  })

  test('[R15] gives up in its time when nobody answers after it was asked', () => {
    const bench = ClientBench.attached({ retryForMs: 2_000 })
    bench.wait(1_000)
    bench.hears({ type: 'error', code: 'reauthorise', message: 'again', fatal: true })
    for (let times = 0; times < 100 && bench.status?.is !== 'failed'; times += 1) {
      bench.cut()
      bench.wait(1_000)
    }
    expect(failure(bench)).toBe('link_lost')
  })

  test('starts once', () => {
    const bench = new ClientBench()
    bench.run(bench.session.start(0))
    bench.run(bench.session.start(0))
    expect(bench.connects).toHaveLength(1)
  })

  test('[E6] anything but a welcome or an error first is a broken server', () => {
    for (const message of [
      { type: 'pong', id: 1 },
      { type: 'gap', from: 0, to: 1 },
      { type: 'exit', code: 0, signal: null, outputEnd: 0, truncated: false },
    ] as const) {
      const bench = new ClientBench()
      bench.run(bench.session.start(0))
      bench.open()
      bench.hears(message)
      expect(failure(bench)).toBe('bad_frame')
    }
    const bench = new ClientBench()
    bench.run(bench.session.start(0))
    bench.open()
    bench.hearsData('x')
    expect(failure(bench)).toBe('bad_frame')
  })
})

describe('output', () => {
  test('[R1] is handed on with its end', () => {
    const bench = ClientBench.attached()
    bench.hearsData('abc')
    bench.hearsData('de', 'stderr')
    expect(bench.takeGiven()).toEqual([
      { type: 'output', stream: 'stdout', text: 'abc', end: 3 },
      { type: 'output', stream: 'stderr', text: 'de', end: 5 },
    ])
  })

  test('[W6] is acknowledged 10 ms after it was consumed, not before', () => {
    const bench = ClientBench.attached()
    bench.hearsData('abc')
    bench.wait(100)
    bench.takeSent()
    bench.consumes(2)
    expect(bench.takeSent()).toEqual([])
    bench.wait(10)
    expect(bench.takeSent()).toEqual([{ type: 'ack', output: 2 }])
  })

  test('[W6] of 16 KiB is acknowledged at once', () => {
    const bench = ClientBench.attached()
    bench.hearsData('x'.repeat(20_000))
    bench.takeSent()
    bench.consumes(16_383)
    expect(bench.takeSent()).toEqual([])
    bench.consumes(16_384)
    expect(bench.takeSent()).toEqual([{ type: 'ack', output: 16_384 }])
  })

  test('[W6] in full frames is acknowledged four at a time after an ack', () => {
    const bench = ClientBench.attached()
    const frame = 'x'.repeat(MAX_DATA_BYTES)
    const consumeFrames = (count: number): void => {
      for (let times = 0; times < count; times += 1) {
        bench.hearsData(frame)
        bench.consumes(bench.session.received)
      }
    }
    bench.wait(1)
    bench.takeSent()
    consumeFrames(9)
    expect(bench.takeSent()).toEqual(
      [1, 5, 9].map((count) => ({ type: 'ack', output: count * frame.length })),
    )
    consumeFrames(1)
    expect(bench.takeSent()).toEqual([])
    bench.wait(1)
    expect(bench.takeSent()).toEqual([{ type: 'ack', output: 10 * frame.length }])
  })

  test('[W6] behind full frames is acknowledged at once', () => {
    const bench = ClientBench.attached()
    bench.wait(1)
    bench.hearsData('x'.repeat(MAX_DATA_BYTES))
    bench.consumes(MAX_DATA_BYTES)
    bench.takeSent()
    bench.hearsData('x'.repeat(20_000))
    bench.consumes(MAX_DATA_BYTES + 20_000)
    expect(bench.takeSent()).toEqual([{ type: 'ack', output: MAX_DATA_BYTES + 20_000 }])
  })

  test('[W2] is never acknowledged beyond what was received, whatever the consumer says', () => {
    const bench = ClientBench.attached()
    bench.hearsData('abc')
    bench.consumes(1_000)
    bench.wait(20)
    expect(bench.takeSent()).toContainEqual({ type: 'ack', output: 3 })
  })

  test('[F2] that is missing is told and counts as consumed when its place comes', () => {
    const bench = ClientBench.attached()
    bench.hearsData('abc')
    bench.hears({ type: 'gap', from: 3, to: 10 })
    bench.hearsData('k')
    expect(bench.takeGiven().map(({ type }) => type)).toEqual(['output', 'gap', 'output'])
    bench.takeSent()
    bench.consumes(3)
    expect(bench.takeSent()).toEqual([{ type: 'ack', output: 10 }])
    bench.consumes(11)
    expect(bench.takeSent()).toEqual([{ type: 'ack', output: 11 }])
  })

  test.each([
    [2, 5],
    [4, 5],
    [3, 2],
  ])('[F2] a gap from %d to %d where 3 is next is a desync', (from, to) => {
    const bench = ClientBench.attached()
    bench.hearsData('abc')
    bench.hears({ type: 'gap', from, to })
    expect(failure(bench)).toBe('desync')
  })
})

describe('a snapshot', () => {
  const head = { type: 'snapshot', at: 100, cols: 90, rows: 30, bytes: 6, exact: true } as const

  test('[S2] is handed on whole, and the stream continues at its offset', () => {
    const bench = ClientBench.attached()
    bench.hears(head)
    bench.hearsData('scr', 'snapshot')
    expect(bench.takeGiven()).toEqual([])
    bench.hearsData('een', 'snapshot')
    bench.hearsData('x')
    expect(bench.takeGiven()).toEqual([
      { type: 'snapshot', at: 100, cols: 90, rows: 30, exact: true, text: 'screen' },
      { type: 'output', stream: 'stdout', text: 'x', end: 101 },
    ])
    bench.takeSent()
    bench.consumes(100)
    expect(bench.takeSent()).toEqual([{ type: 'ack', output: 100 }])
  })

  test('[S3] ahead of what was received tells the gap with it', () => {
    const bench = ClientBench.attached()
    bench.hearsData('abc')
    bench.takeGiven()
    bench.hears({ ...head, bytes: 0 })
    expect(bench.takeGiven().map(({ type }) => type)).toEqual(['gap', 'snapshot'])
  })

  test('[S3] that is not complete moves nothing: after a cut the client holds what it held', () => {
    const bench = ClientBench.attached()
    bench.hearsData('abc')
    bench.hears(head)
    bench.hearsData('scr', 'snapshot')
    bench.reconnect()
    expect(bench.takeSent()).toMatchObject([{ type: 'hello', received: 3, resuming: true }])
    bench.welcome()
    bench.hears({ ...head, bytes: 1 })
    bench.hearsData('s', 'snapshot')
    expect(bench.takeGiven().filter(({ type }) => type === 'snapshot')).toMatchObject([{ text: 's' }])
  })

  test('[E6] that was not announced, is too long, goes back or is broken into is a broken server', () => {
    const cases: ((bench: ClientBench) => void)[] = [
      (bench) => bench.hearsData('x', 'snapshot'),
      (bench) => {
        bench.hears(head)
        bench.hearsData('1234567', 'snapshot')
      },
      (bench) => {
        bench.hears(head)
        bench.hearsData('x')
      },
      (bench) => {
        bench.hears(head)
        bench.hears(head)
      },
      (bench) => {
        bench.hearsData('abc')
        bench.hears({ ...head, at: 2 })
      },
    ]
    for (const broken of cases) {
      const bench = ClientBench.attached()
      broken(bench)
      expect(bench.status?.is).toBe('failed')
    }
  })
})

describe('input', () => {
  test('[I3] is sent as far as there is credit', () => {
    const bench = ClientBench.attached({}, { inputWindow: 4 })
    bench.writes('abcdef')
    expect(bench.takeSent()).toEqual(['abcd'])
    bench.hears({ type: 'ack', input: 1, seq: 0 })
    expect(bench.takeSent()).toEqual(['e'])
    bench.hears({ type: 'ack', input: 5, seq: 0 })
    expect(bench.takeSent()).toEqual(['f'])
  })

  test('[I6] typed before the welcome is sent after it', () => {
    const bench = new ClientBench()
    bench.run(bench.session.start(0))
    bench.writes('early')
    bench.run(bench.session.control({ type: 'eof' }))
    bench.open()
    bench.takeSent()
    bench.welcome()
    expect(bench.takeSent()).toEqual(['early', { type: 'eof', at: 5, seq: 1 }])
  })

  test('[I7] a signal overtakes what waits for credit', () => {
    const bench = ClientBench.attached({}, { inputWindow: 2 })
    bench.writes('abcd')
    bench.takeSent()
    bench.run(bench.session.control({ type: 'signal', signal: 'SIGINT' }))
    expect(bench.takeSent()).toEqual([{ type: 'signal', signal: 'SIGINT', at: 2, seq: 1 }])
  })

  test('[I11] past what is held makes the caller wait until there is room', () => {
    const bench = ClientBench.attached({ maxInputBytes: 10 }, { inputWindow: 5 })
    bench.writes('0123456789')
    expect(bench.session.canWrite).toBe(false)
    bench.hears({ type: 'ack', input: 1, seq: 0 })
    expect(bench.takeGiven()).toEqual([{ type: 'writable' }])
    expect(bench.session.canWrite).toBe(true)
  })

  test('[R2] that was not accepted is sent again after a cut', () => {
    const bench = ClientBench.attached()
    bench.writes('abcdef')
    bench.run(bench.session.control({ type: 'signal', signal: 'SIGINT' }))
    bench.writes('gh')
    bench.reconnect()
    bench.takeSent()
    bench.welcome({ input: { at: 4, seq: 0 } })
    expect(bench.takeSent()).toEqual(['ef', { type: 'signal', signal: 'SIGINT', at: 6, seq: 1 }, 'gh'])
    expect(bench.session.heldInputBytes).toBe(4)
  })

  test('[R2] that the server claims without having got it is a desync', () => {
    const acked = ClientBench.attached()
    acked.hears({ type: 'ack', input: 1, seq: 0 })
    expect(failure(acked)).toBe('desync')
    const welcomed = ClientBench.attached()
    welcomed.reconnect()
    welcomed.welcome({ input: { at: 1, seq: 0 } })
    expect(failure(welcomed)).toBe('desync')
  })

  test('[I9] that nobody reads is reported as lost, and so is what comes later', () => {
    const bench = ClientBench.attached({}, { inputWindow: 4 })
    bench.writes('abcdef')
    bench.hears({ type: 'stdinClosed', at: 1 })
    bench.hears({ type: 'stdinClosed', at: 1 })
    bench.writes('gh')
    expect(bench.takeGiven()).toEqual([
      { type: 'inputLost', bytes: 5, why: 'stdinClosed' },
      { type: 'inputLost', bytes: 2, why: 'stdinClosed' },
    ])
  })

  test('[I9] is reported once, also when the lease is lost after the input was closed', () => {
    const bench = ClientBench.attached()
    bench.writes('abcdef')
    bench.hears({ type: 'stdinClosed', at: 1 })
    bench.hears({ type: 'role', role: 'viewer', epoch: 2, input: { at: 3, seq: 0 } })
    expect(bench.takeGiven()).toEqual([{ type: 'inputLost', bytes: 5, why: 'stdinClosed' }])
  })

  test('[I8] that is closed does not keep the end of input from being said', () => {
    const bench = ClientBench.attached()
    bench.hears({ type: 'stdinClosed', at: 0 })
    bench.run(bench.session.control({ type: 'eof' }))
    expect(bench.takeSent()).toEqual([{ type: 'eof', at: 0, seq: 1 }])
  })
})

describe('a change of role', () => {
  const viewer = { type: 'role', role: 'viewer', epoch: 2 } as const

  test('[L9] is confirmed, and what was not accepted is reported as lost', () => {
    const bench = ClientBench.attached()
    bench.writes('abcdef')
    bench.takeSent()
    bench.hears({ ...viewer, input: { at: 2, seq: 0 } })
    expect(bench.takeSent()).toEqual([{ type: 'roleSeen', epoch: 2 }])
    expect(bench.takeGiven()).toEqual([{ type: 'inputLost', bytes: 4, why: 'role' }])
    expect(bench.status).toEqual({ is: 'attached', session: 's1', role: 'viewer' })
  })

  test('[L8] to viewer means that input is not sent, but reported', () => {
    const bench = ClientBench.attached({}, { role: 'viewer' })
    bench.writes('abc')
    bench.run(bench.session.control({ type: 'eof' }))
    bench.run(bench.session.control({ type: 'resize', cols: 1, rows: 1 }))
    expect(bench.takeSent()).toEqual([])
    expect(bench.takeGiven()).toEqual([{ type: 'inputLost', bytes: 3, why: 'role' }])
  })

  test('[L8] a collaborator sends input and keeps signals and sizes to itself', () => {
    const bench = ClientBench.attached({}, { role: 'collaborator' })
    bench.run(bench.session.control({ type: 'signal', signal: 'SIGINT' }))
    bench.run(bench.session.control({ type: 'resize', cols: 1, rows: 1 }))
    bench.writes('abc')
    expect(bench.takeSent()).toEqual(['abc'])
  })

  test('[T5] to driver tells the size of this terminal', () => {
    const bench = ClientBench.attached({}, { role: 'viewer' })
    bench.run(bench.session.control({ type: 'resize', cols: 99, rows: 33 }))
    bench.hears({ type: 'role', role: 'driver', epoch: 3, input: { at: 0, seq: 0 } })
    expect(bench.takeSent()).toEqual([
      { type: 'roleSeen', epoch: 3 },
      { type: 'resize', cols: 99, rows: 33, at: 0, seq: 1 },
    ])
  })

  test('[T4] a size that did not change is not sent', () => {
    const bench = ClientBench.attached()
    bench.run(bench.session.control({ type: 'resize', cols: 80, rows: 24 }))
    expect(bench.takeSent()).toEqual([])
  })

  test('[L3] asks, takes and gives only while it is attached', () => {
    const bench = ClientBench.attached()
    bench.run(bench.session.lease({ type: 'take' }))
    bench.run(bench.session.lease({ type: 'ask' }))
    bench.run(bench.session.lease({ type: 'give', to: 'a2' }))
    expect(bench.takeSent()).toEqual([{ type: 'take' }, { type: 'ask' }, { type: 'give', to: 'a2' }])
    bench.cut()
    bench.run(bench.session.lease({ type: 'take' }))
    expect(bench.takeSent()).toEqual([])
  })
})

describe('a cut', () => {
  test('[R10] is followed by attempts that wait longer and longer', () => {
    const bench = ClientBench.attached()
    const delays: number[] = []
    for (let times = 0; times < 9; times += 1) {
      bench.cut()
      if (bench.status?.is !== 'reconnecting') break
      delays.push(bench.status.atMs - bench.nowMs)
      bench.wait(delays.at(-1) ?? 0)
    }
    expect(delays).toEqual([50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000])
    expect(bench.connects.slice(1).every((session) => session === 's1')).toBe(true)
  })

  test('[R11] that lasts longer than the client wants to wait is the end', () => {
    const bench = ClientBench.attached({ retryForMs: 1_000 })
    for (let times = 0; times < 20 && bench.status?.is !== 'failed'; times += 1) {
      bench.cut()
      bench.wait(500)
    }
    expect(failure(bench)).toBe('link_lost')
    expect(bench.session.nextTickMs()).toBeUndefined()
  })

  test('[R9] is followed by an ack of everything consumed', () => {
    const bench = ClientBench.attached()
    bench.hearsData('abc')
    bench.consumes(3)
    bench.wait(10)
    bench.reconnect()
    expect(bench.takeSent()).toMatchObject([{ type: 'hello', attempt: 2, resuming: true, received: 3 }])
    bench.welcome()
    expect(bench.takeSent()).toEqual([{ type: 'ack', output: 3 }])
  })

  test('[R13] leaves nothing that the old connection says', () => {
    const bench = ClientBench.attached()
    bench.reconnect()
    bench.hearsData('ghost', 'stdout', 1)
    bench.hears({ type: 'error', code: 'replaced', message: 'x', fatal: true }, 1)
    bench.run(bench.session.closed(1, { code: 'replaced', message: 'x' }, bench.nowMs))
    bench.welcome()
    expect(bench.status?.is).toBe('attached')
    expect(bench.session.received).toBe(0)
  })

  test('[R1] after which the server would continue elsewhere is a desync', () => {
    for (const wrong of [{ output: 2 }, { output: 4 }, { session: 's2' }]) {
      const bench = ClientBench.attached()
      bench.hearsData('abc')
      bench.reconnect()
      bench.welcome(wrong)
      expect(failure(bench)).toBe('desync')
    }
  })

  test('[E3] for a reason that this client does not know is tried again', () => {
    const bench = ClientBench.attached()
    bench.hears({ type: 'error', code: 'brand_new', message: 'x', fatal: true })
    expect(bench.status?.is).toBe('reconnecting')
  })

  test('[R11] for a reason that will not pass is the end', () => {
    const bench = ClientBench.attached()
    bench.hears({ type: 'error', code: 'replaced', message: 'Elsewhere', fatal: true })
    expect(bench.status).toMatchObject({ is: 'failed', error: { code: 'replaced', message: 'Elsewhere' } })
    expect(bench.closed).toEqual([1])
  })

  test('[T1] is not what a fault means that is not fatal', () => {
    const bench = ClientBench.attached()
    bench.hears({ type: 'error', code: 'line_too_long', message: 'Too long', fatal: false })
    expect(bench.takeGiven()).toEqual([
      { type: 'warning', code: 'line_too_long', message: 'Too long', stopReason: undefined },
    ])
    expect(bench.status?.is).toBe('attached')
  })

  test('[X13] reports the stop reason that is known, and leaves out any other', () => {
    const bench = ClientBench.attached()
    const stopping = { type: 'error', code: 'shutting_down', message: 'Stopping', fatal: false } as const
    bench.hears({ ...stopping, reason: 'idle' })
    bench.hears({ ...stopping, reason: 'brand_new' })
    expect(bench.takeGiven()).toMatchObject([{ stopReason: 'idle' }, { stopReason: undefined }])
  })
})

describe('the exit', () => {
  const exit = { type: 'exit', code: 3, signal: null, truncated: false } as const

  test('[X7] is told when the consumer has everything', () => {
    const bench = ClientBench.attached()
    bench.hearsData('abc')
    bench.hears({ ...exit, outputEnd: 3 })
    expect(bench.status?.is).toBe('attached')
    bench.takeSent()
    bench.consumes(3)
    expect(bench.status).toEqual({ is: 'exited', exit: { ...exit, outputEnd: 3 } })
    expect(bench.takeSent()).toEqual([{ type: 'ack', output: 3 }])
    expect(bench.closed).toEqual([1])
  })

  test('[X7] needs no connection any more', () => {
    const bench = ClientBench.attached()
    bench.hearsData('abc')
    bench.hears({ ...exit, outputEnd: 3 })
    bench.cut()
    bench.wait(1_000_000)
    expect(bench.connects).toHaveLength(1)
    bench.consumes(3)
    expect(bench.status?.is).toBe('exited')
  })

  test.each([2, 4])('[X2] at %d when 3 bytes were received is a desync', (outputEnd) => {
    const bench = ClientBench.attached()
    bench.hearsData('abc')
    bench.hears({ ...exit, outputEnd })
    expect(failure(bench)).toBe('desync')
  })

  test('[I11] releases a caller that waits to write', () => {
    const bench = ClientBench.attached({ maxInputBytes: 1 })
    bench.writes('abc')
    bench.hears({ ...exit, outputEnd: 0 })
    expect(bench.takeGiven()).toEqual([{ type: 'writable' }])
  })
})

describe('a heartbeat', () => {
  test('[H2] asks soon after the welcome and tells the round trip', () => {
    const bench = ClientBench.attached()
    bench.wait(0)
    expect(bench.takeSent()).toEqual([{ type: 'ping', id: 1 }])
    bench.nowMs = 30
    bench.hears({ type: 'pong', id: 1 })
    expect(bench.takeGiven()).toEqual([{ type: 'roundTrip', ms: 30 }])
  })

  test('[H3] that is not answered on a silent connection makes it reconnect', () => {
    const bench = ClientBench.attached()
    bench.wait(0)
    bench.hears({ type: 'pong', id: 1 })
    bench.wait(15_000)
    expect(bench.connects).toHaveLength(1)
    bench.wait(10_050)
    expect(bench.connects).toEqual([undefined, 's1'])
  })

  test('[H6] says that the server is silent before it is given up, and that it is not', () => {
    const bench = ClientBench.attached()
    bench.wait(0)
    bench.hears({ type: 'pong', id: 1 })
    bench.wait(19_999)
    expect(bench.takeGiven()).toEqual([{ type: 'roundTrip', ms: 0 }])
    bench.wait(1)
    expect(bench.takeGiven()).toEqual([{ type: 'silence', isSilent: true }])
    expect(bench.status?.is).toBe('attached')
    bench.hears({ type: 'presence', driver: null, attachments: [] })
    expect(bench.takeGiven()).toContainEqual({ type: 'silence', isSilent: false })
  })

  test('[H6] says nothing of silence once the connection is lost', () => {
    const bench = ClientBench.attached()
    bench.wait(5_000)
    bench.cut()
    expect(bench.takeGiven().at(-1)).toEqual({ type: 'silence', isSilent: false })
  })

  test('[H7] that cannot wait is asked at once, and makes a connection that stays silent reconnect', () => {
    const bench = ClientBench.attached()
    bench.wait(0)
    bench.hears({ type: 'pong', id: 1 })
    bench.takeSent()
    bench.run(bench.session.probe(500, bench.nowMs))
    expect(bench.takeSent()).toEqual([{ type: 'ping', id: 2 }])
    bench.wait(499)
    expect(bench.status?.is).toBe('attached')
    bench.wait(1)
    expect(bench.status?.is).toBe('reconnecting')
  })

  test('[H7] that cannot wait leaves a connection alone that is alive', () => {
    const bench = ClientBench.attached()
    bench.run(bench.session.probe(500, bench.nowMs))
    bench.wait(499)
    bench.hearsData('x')
    bench.wait(10_000)
    expect(bench.status?.is).toBe('attached')
  })

  test('[H7] makes who waits for the next attempt connect at once', () => {
    const bench = ClientBench.attached()
    for (let times = 0; times < 6; times += 1) {
      bench.cut()
      bench.wait(2_000)
    }
    bench.cut()
    const before = bench.connects.length
    bench.run(bench.session.probe(500, bench.nowMs))
    expect(bench.connects).toHaveLength(before + 1)
    bench.open()
    bench.welcome()
    expect(bench.status?.is).toBe('attached')
  })
})

describe('leaving', () => {
  test('[L7] is said, and is the end', () => {
    const bench = ClientBench.attached()
    bench.run(bench.session.detach())
    expect(bench.takeSent()).toEqual([{ type: 'detach' }])
    expect(bench.status?.is).toBe('detached')
    bench.run(bench.session.detach())
    bench.writes('x')
    bench.run(bench.session.control({ type: 'eof' }))
    bench.hearsData('x')
    bench.consumes(1)
    bench.wait(100_000)
    expect(bench.takeSent()).toEqual([])
    expect(bench.takeGiven()).toEqual([])
    expect(bench.connects).toHaveLength(1)
  })

  test('[L7] works without a connection, too', () => {
    const bench = ClientBench.attached()
    bench.cut()
    bench.run(bench.session.detach())
    expect(bench.status?.is).toBe('detached')
    expect(bench.session.nextTickMs()).toBeUndefined()
  })
})

describe('what others do', () => {
  test('[L10] is handed on', () => {
    const bench = ClientBench.attached()
    bench.hears({ type: 'presence', driver: null, attachments: [] })
    bench.hears({ type: 'asked', by: 'a2' })
    bench.hears({ type: 'resized', at: 0, cols: 90, rows: 30 })
    expect(bench.takeGiven().map(({ type }) => type)).toEqual(['presence', 'asked', 'resized'])
  })
})

test('[E6] a server that talks nonsense is left, and never makes the client throw', () => {
  const frame = fc.oneof(
    fc.json(),
    fc.string(),
    fc.uint8Array({ maxLength: 10 }),
    fc
      .record(
        {
          type: fc.constantFrom('ack', 'gap', 'snapshot', 'exit', 'role', 'welcome', 'pong'),
          at: fc.nat(9),
          input: fc.nat(9),
          seq: fc.nat(3),
          from: fc.nat(9),
          to: fc.nat(9),
          bytes: fc.nat(9),
        },
        { requiredKeys: ['type'] },
      )
      .map((message) => JSON.stringify(message)),
  )
  fc.assert(
    fc.property(fc.array(frame, { maxLength: 20 }), (frames) => {
      const bench = ClientBench.attached()
      for (const wire of frames) bench.hearsRaw(wire)
      bench.writes('x')
      bench.wait(1_000)
    }),
    { numRuns: 1_000 },
  )
})
