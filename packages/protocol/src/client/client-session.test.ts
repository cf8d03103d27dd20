import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ERRORS, isErrorCode } from '../errors.ts'
import { MAX_DATA_BYTES } from '../limits.ts'
import { ClientFixture } from './client-session.fixture.ts'

const failure = (fixture: ClientFixture): string | undefined =>
  fixture.status?.kind === 'failed' ? fixture.status.error.code : undefined

describe('connecting', () => {
  test('[R1] sends its identity and a received offset of 0', () => {
    const fixture = new ClientFixture({ name: 'ann', role: 'viewer', env: { TERM: 'xterm' } })
    fixture.run(fixture.session.start(0))
    expect(fixture.connects).toEqual([undefined])
    fixture.open()
    expect(fixture.takeSent()).toEqual([
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

  test('[C1] repeats the create until it is welcomed or its time is over', () => {
    const fixture = new ClientFixture({ connectForMs: 2_000 })
    fixture.run(fixture.session.start(0))
    for (let times = 0; times < 100 && fixture.status?.kind !== 'failed'; times += 1) {
      fixture.disconnect()
      fixture.wait(1_000)
    }
    expect(failure(fixture)).toBe('link_lost')
    expect(fixture.connects.every((session) => session === undefined)).toBe(true)
    expect(fixture.connects.length).toBeGreaterThan(2)
  })

  test('[R12] abandons an attempt without a welcome within 15 s', () => {
    const fixture = new ClientFixture({ connectForMs: 100_000 })
    fixture.run(fixture.session.start(0))
    fixture.wait(14_999)
    expect(fixture.closed).toEqual([])
    fixture.wait(1)
    expect(fixture.closed).toEqual([1])
    fixture.wait(100)
    fixture.open()
    fixture.wait(15_000)
    expect(fixture.closed).toEqual([1, 2])
  })

  test('[R11] stops at once at an error that is not retryable', () => {
    for (const code of Object.keys(ERRORS).filter(isErrorCode)) {
      const fixture = new ClientFixture()
      fixture.run(fixture.session.start(0))
      fixture.run(fixture.session.closed(1, { code, message: code }, 0))
      expect(fixture.status?.kind).toBe(ERRORS[code].retryable ? 'reconnecting' : 'failed')
    }
  })

  test('[R15] reconnects at once on reauthorise, without reporting it', () => {
    const fixture = ClientFixture.attached()
    fixture.wait(1_000)
    fixture.receiveMessage({ type: 'error', code: 'reauthorise', message: 'again', fatal: true })
    expect(fixture.connects).toEqual([undefined, 's1'])
    expect(fixture.status?.kind).toBe('attached')
    fixture.open()
    expect(fixture.takeSent().at(-1)).toMatchObject({ type: 'hello', attempt: 2, resuming: true })
    fixture.welcome()
    fixture.wait(1_000)
    fixture.run(
      fixture.session.closed(fixture.attempt, { code: 'reauthorise', message: 'again' }, fixture.nowMs),
    )
    expect(fixture.connects).toEqual([undefined, 's1', 's1'])
  })

  test('[R15] backs off on repeated reauthorise', () => {
    const fixture = ClientFixture.attached()
    fixture.wait(999)
    fixture.receiveMessage({ type: 'error', code: 'reauthorise', message: 'again', fatal: true })
    expect(fixture.connects).toEqual([undefined])
    expect(fixture.status?.kind).toBe('reconnecting')
  })

  test('[R15] fails when the new credential is refused', () => {
    const fixture = ClientFixture.attached()
    fixture.wait(1_000)
    fixture.receiveMessage({ type: 'error', code: 'reauthorise', message: 'again', fatal: true })
    fixture.run(
      fixture.session.closed(fixture.attempt, { code: 'unauthorized', message: 'no' }, fixture.nowMs),
    )
    expect(failure(fixture)).toBe('unauthorized')
  })

  test('[R15] gives up after its retry time when the server does not answer', () => {
    const fixture = ClientFixture.attached({ retryForMs: 2_000 })
    fixture.wait(1_000)
    fixture.receiveMessage({ type: 'error', code: 'reauthorise', message: 'again', fatal: true })
    for (let times = 0; times < 100 && fixture.status?.kind !== 'failed'; times += 1) {
      fixture.disconnect()
      fixture.wait(1_000)
    }
    expect(failure(fixture)).toBe('link_lost')
  })

  test('starts once', () => {
    const fixture = new ClientFixture()
    fixture.run(fixture.session.start(0))
    fixture.run(fixture.session.start(0))
    expect(fixture.connects).toHaveLength(1)
  })

  test('[E6] anything but a welcome or an error first is a broken server', () => {
    for (const message of [
      { type: 'pong', id: 1 },
      { type: 'gap', from: 0, to: 1 },
      { type: 'exit', code: 0, signal: null, outputEnd: 0, truncated: false },
    ] as const) {
      const fixture = new ClientFixture()
      fixture.run(fixture.session.start(0))
      fixture.open()
      fixture.receiveMessage(message)
      expect(failure(fixture)).toBe('bad_frame')
    }
    const fixture = new ClientFixture()
    fixture.run(fixture.session.start(0))
    fixture.open()
    fixture.receiveData('x')
    expect(failure(fixture)).toBe('bad_frame')
  })
})

describe('output', () => {
  test('[R1] is delivered with its end offset', () => {
    const fixture = ClientFixture.attached()
    fixture.receiveData('abc')
    fixture.receiveData('de', 'stderr')
    expect(fixture.takeDelivered()).toEqual([
      { type: 'output', stream: 'stdout', text: 'abc', end: 3 },
      { type: 'output', stream: 'stderr', text: 'de', end: 5 },
    ])
  })

  test('[W6] is acknowledged 10 ms after it was consumed, not before', () => {
    const fixture = ClientFixture.attached()
    fixture.receiveData('abc')
    fixture.wait(100)
    fixture.takeSent()
    fixture.consume(2)
    expect(fixture.takeSent()).toEqual([])
    fixture.wait(10)
    expect(fixture.takeSent()).toEqual([{ type: 'ack', output: 2 }])
  })

  test('[W6] of 16 KiB is acknowledged at once', () => {
    const fixture = ClientFixture.attached()
    fixture.receiveData('x'.repeat(20_000))
    fixture.takeSent()
    fixture.consume(16_383)
    expect(fixture.takeSent()).toEqual([])
    fixture.consume(16_384)
    expect(fixture.takeSent()).toEqual([{ type: 'ack', output: 16_384 }])
  })

  test('[W6] in full frames is acknowledged four at a time after an ack', () => {
    const fixture = ClientFixture.attached()
    const frame = 'x'.repeat(MAX_DATA_BYTES)
    const consumeFrames = (count: number): void => {
      for (let times = 0; times < count; times += 1) {
        fixture.receiveData(frame)
        fixture.consume(fixture.session.received)
      }
    }
    fixture.wait(1)
    fixture.takeSent()
    consumeFrames(9)
    expect(fixture.takeSent()).toEqual(
      [1, 5, 9].map((count) => ({ type: 'ack', output: count * frame.length })),
    )
    consumeFrames(1)
    expect(fixture.takeSent()).toEqual([])
    fixture.wait(1)
    expect(fixture.takeSent()).toEqual([{ type: 'ack', output: 10 * frame.length }])
  })

  test('[W6] after full frames is acknowledged at once', () => {
    const fixture = ClientFixture.attached()
    fixture.wait(1)
    fixture.receiveData('x'.repeat(MAX_DATA_BYTES))
    fixture.consume(MAX_DATA_BYTES)
    fixture.takeSent()
    fixture.receiveData('x'.repeat(20_000))
    fixture.consume(MAX_DATA_BYTES + 20_000)
    expect(fixture.takeSent()).toEqual([{ type: 'ack', output: MAX_DATA_BYTES + 20_000 }])
  })

  test('[W2] is never acknowledged beyond what was received, whatever the consumer reports', () => {
    const fixture = ClientFixture.attached()
    fixture.receiveData('abc')
    fixture.consume(1_000)
    fixture.wait(20)
    expect(fixture.takeSent()).toContainEqual({ type: 'ack', output: 3 })
  })

  test('[F2] that is missing is reported, and counts as consumed in its turn', () => {
    const fixture = ClientFixture.attached()
    fixture.receiveData('abc')
    fixture.receiveMessage({ type: 'gap', from: 3, to: 10 })
    fixture.receiveData('k')
    expect(fixture.takeDelivered().map(({ type }) => type)).toEqual(['output', 'gap', 'output'])
    fixture.takeSent()
    fixture.consume(3)
    expect(fixture.takeSent()).toEqual([{ type: 'ack', output: 10 }])
    fixture.consume(11)
    expect(fixture.takeSent()).toEqual([{ type: 'ack', output: 11 }])
  })

  test.each([
    [2, 5],
    [4, 5],
    [3, 2],
  ])('[F2] a gap from %d to %d where 3 is next is a desync', (from, to) => {
    const fixture = ClientFixture.attached()
    fixture.receiveData('abc')
    fixture.receiveMessage({ type: 'gap', from, to })
    expect(failure(fixture)).toBe('desync')
  })
})

describe('a snapshot', () => {
  const head = { type: 'snapshot', at: 100, cols: 90, rows: 30, bytes: 6, exact: true } as const

  test('[S2] is delivered complete, and the stream continues at its offset', () => {
    const fixture = ClientFixture.attached()
    fixture.receiveMessage(head)
    fixture.receiveData('scr', 'snapshot')
    expect(fixture.takeDelivered()).toEqual([])
    fixture.receiveData('een', 'snapshot')
    fixture.receiveData('x')
    expect(fixture.takeDelivered()).toEqual([
      { type: 'snapshot', at: 100, cols: 90, rows: 30, exact: true, text: 'screen' },
      { type: 'output', stream: 'stdout', text: 'x', end: 101 },
    ])
    fixture.takeSent()
    fixture.consume(100)
    expect(fixture.takeSent()).toEqual([{ type: 'ack', output: 100 }])
  })

  test('[S3] ahead of what was received reports the gap', () => {
    const fixture = ClientFixture.attached()
    fixture.receiveData('abc')
    fixture.takeDelivered()
    fixture.receiveMessage({ ...head, bytes: 0 })
    expect(fixture.takeDelivered().map(({ type }) => type)).toEqual(['gap', 'snapshot'])
  })

  test('[S3] that is incomplete does not change the offset', () => {
    const fixture = ClientFixture.attached()
    fixture.receiveData('abc')
    fixture.receiveMessage(head)
    fixture.receiveData('scr', 'snapshot')
    fixture.reconnect()
    expect(fixture.takeSent()).toMatchObject([{ type: 'hello', received: 3, resuming: true }])
    fixture.welcome()
    fixture.receiveMessage({ ...head, bytes: 1 })
    fixture.receiveData('s', 'snapshot')
    expect(fixture.takeDelivered().filter(({ type }) => type === 'snapshot')).toMatchObject([{ text: 's' }])
  })

  test('[E6] that was not announced, is too long, goes back or is interrupted is an error of the server', () => {
    const cases: ((fixture: ClientFixture) => void)[] = [
      (fixture) => fixture.receiveData('x', 'snapshot'),
      (fixture) => {
        fixture.receiveMessage(head)
        fixture.receiveData('1234567', 'snapshot')
      },
      (fixture) => {
        fixture.receiveMessage(head)
        fixture.receiveData('x')
      },
      (fixture) => {
        fixture.receiveMessage(head)
        fixture.receiveMessage(head)
      },
      (fixture) => {
        fixture.receiveData('abc')
        fixture.receiveMessage({ ...head, at: 2 })
      },
    ]
    for (const broken of cases) {
      const fixture = ClientFixture.attached()
      broken(fixture)
      expect(fixture.status?.kind).toBe('failed')
    }
  })
})

describe('input', () => {
  test('[I3] is sent as far as there is credit', () => {
    const fixture = ClientFixture.attached({}, { inputWindow: 4 })
    fixture.write('abcdef')
    expect(fixture.takeSent()).toEqual(['abcd'])
    fixture.receiveMessage({ type: 'ack', input: 1, seq: 0 })
    expect(fixture.takeSent()).toEqual(['e'])
    fixture.receiveMessage({ type: 'ack', input: 5, seq: 0 })
    expect(fixture.takeSent()).toEqual(['f'])
  })

  test('[I6] written before the welcome is sent after it', () => {
    const fixture = new ClientFixture()
    fixture.run(fixture.session.start(0))
    fixture.write('early')
    fixture.run(fixture.session.control({ type: 'eof' }))
    fixture.open()
    fixture.takeSent()
    fixture.welcome()
    expect(fixture.takeSent()).toEqual(['early', { type: 'eof', at: 5, seq: 1 }])
  })

  test('[I7] a signal overtakes bytes that wait for credit', () => {
    const fixture = ClientFixture.attached({}, { inputWindow: 2 })
    fixture.write('abcd')
    fixture.takeSent()
    fixture.run(fixture.session.control({ type: 'signal', signal: 'SIGINT' }))
    expect(fixture.takeSent()).toEqual([{ type: 'signal', signal: 'SIGINT', at: 2, seq: 1 }])
  })

  test('[I11] beyond the queue limit makes the caller wait', () => {
    const fixture = ClientFixture.attached({ maxInputBytes: 10 }, { inputWindow: 5 })
    fixture.write('0123456789')
    expect(fixture.session.canWrite).toBe(false)
    fixture.receiveMessage({ type: 'ack', input: 1, seq: 0 })
    expect(fixture.takeDelivered()).toEqual([{ type: 'writable' }])
    expect(fixture.session.canWrite).toBe(true)
  })

  test('[R2] that was not accepted is sent again after a reconnect', () => {
    const fixture = ClientFixture.attached()
    fixture.write('abcdef')
    fixture.run(fixture.session.control({ type: 'signal', signal: 'SIGINT' }))
    fixture.write('gh')
    fixture.reconnect()
    fixture.takeSent()
    fixture.welcome({ input: { at: 4, seq: 0 } })
    expect(fixture.takeSent()).toEqual(['ef', { type: 'signal', signal: 'SIGINT', at: 6, seq: 1 }, 'gh'])
    expect(fixture.session.heldInputBytes).toBe(4)
  })

  test('[R2] that the server confirms without having received it is a desync', () => {
    const acked = ClientFixture.attached()
    acked.receiveMessage({ type: 'ack', input: 1, seq: 0 })
    expect(failure(acked)).toBe('desync')
    const welcomed = ClientFixture.attached()
    welcomed.reconnect()
    welcomed.welcome({ input: { at: 1, seq: 0 } })
    expect(failure(welcomed)).toBe('desync')
  })

  test('[I9] that the process does not read is reported as lost, and so is later input', () => {
    const fixture = ClientFixture.attached({}, { inputWindow: 4 })
    fixture.write('abcdef')
    fixture.receiveMessage({ type: 'stdinClosed', at: 1 })
    fixture.receiveMessage({ type: 'stdinClosed', at: 1 })
    fixture.write('gh')
    expect(fixture.takeDelivered()).toEqual([
      { type: 'inputLost', bytes: 5, why: 'stdinClosed' },
      { type: 'inputLost', bytes: 2, why: 'stdinClosed' },
    ])
  })

  test('[I9] is reported once, also when the lease is lost after the input was closed', () => {
    const fixture = ClientFixture.attached()
    fixture.write('abcdef')
    fixture.receiveMessage({ type: 'stdinClosed', at: 1 })
    fixture.receiveMessage({ type: 'role', role: 'viewer', epoch: 2, input: { at: 3, seq: 0 } })
    expect(fixture.takeDelivered()).toEqual([{ type: 'inputLost', bytes: 5, why: 'stdinClosed' }])
  })

  test('[I8] that is closed does not prevent eof', () => {
    const fixture = ClientFixture.attached()
    fixture.receiveMessage({ type: 'stdinClosed', at: 0 })
    fixture.run(fixture.session.control({ type: 'eof' }))
    expect(fixture.takeSent()).toEqual([{ type: 'eof', at: 0, seq: 1 }])
  })
})

describe('a change of role', () => {
  const viewer = { type: 'role', role: 'viewer', epoch: 2 } as const

  test('[L9] is confirmed, and what was not accepted is reported as lost', () => {
    const fixture = ClientFixture.attached()
    fixture.write('abcdef')
    fixture.takeSent()
    fixture.receiveMessage({ ...viewer, input: { at: 2, seq: 0 } })
    expect(fixture.takeSent()).toEqual([{ type: 'roleSeen', epoch: 2 }])
    expect(fixture.takeDelivered()).toEqual([{ type: 'inputLost', bytes: 4, why: 'role' }])
    expect(fixture.status).toEqual({ kind: 'attached', session: 's1', role: 'viewer' })
  })

  test('[L8] to viewer makes input be reported as lost', () => {
    const fixture = ClientFixture.attached({}, { role: 'viewer' })
    fixture.write('abc')
    fixture.run(fixture.session.control({ type: 'eof' }))
    fixture.run(fixture.session.control({ type: 'resize', cols: 1, rows: 1 }))
    expect(fixture.takeSent()).toEqual([])
    expect(fixture.takeDelivered()).toEqual([{ type: 'inputLost', bytes: 3, why: 'role' }])
  })

  test('[L8] a collaborator sends input, but no signals or sizes', () => {
    const fixture = ClientFixture.attached({}, { role: 'collaborator' })
    fixture.run(fixture.session.control({ type: 'signal', signal: 'SIGINT' }))
    fixture.run(fixture.session.control({ type: 'resize', cols: 1, rows: 1 }))
    fixture.write('abc')
    expect(fixture.takeSent()).toEqual(['abc'])
  })

  test('[T5] to driver sends the size of this terminal', () => {
    const fixture = ClientFixture.attached({}, { role: 'viewer' })
    fixture.run(fixture.session.control({ type: 'resize', cols: 99, rows: 33 }))
    fixture.receiveMessage({ type: 'role', role: 'driver', epoch: 3, input: { at: 0, seq: 0 } })
    expect(fixture.takeSent()).toEqual([
      { type: 'roleSeen', epoch: 3 },
      { type: 'resize', cols: 99, rows: 33, at: 0, seq: 1 },
    ])
  })

  test('[T4] a size that did not change is not sent', () => {
    const fixture = ClientFixture.attached()
    fixture.run(fixture.session.control({ type: 'resize', cols: 80, rows: 24 }))
    expect(fixture.takeSent()).toEqual([])
  })

  test('[L3] asks, takes and gives only while it is attached', () => {
    const fixture = ClientFixture.attached()
    fixture.run(fixture.session.lease({ type: 'take' }))
    fixture.run(fixture.session.lease({ type: 'ask' }))
    fixture.run(fixture.session.lease({ type: 'give', to: 'a2' }))
    expect(fixture.takeSent()).toEqual([{ type: 'take' }, { type: 'ask' }, { type: 'give', to: 'a2' }])
    fixture.disconnect()
    fixture.run(fixture.session.lease({ type: 'take' }))
    expect(fixture.takeSent()).toEqual([])
  })
})

describe('a lost connection', () => {
  test('[R10] is followed by attempts with increasing delays', () => {
    const fixture = ClientFixture.attached()
    const delays: number[] = []
    for (let times = 0; times < 9; times += 1) {
      fixture.disconnect()
      if (fixture.status?.kind !== 'reconnecting') break
      delays.push(fixture.status.atMs - fixture.nowMs)
      fixture.wait(delays.at(-1) ?? 0)
    }
    expect(delays).toEqual([50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000])
    expect(fixture.connects.slice(1).every((session) => session === 's1')).toBe(true)
  })

  test('[R11] fails after the retry time', () => {
    const fixture = ClientFixture.attached({ retryForMs: 1_000 })
    for (let times = 0; times < 20 && fixture.status?.kind !== 'failed'; times += 1) {
      fixture.disconnect()
      fixture.wait(500)
    }
    expect(failure(fixture)).toBe('link_lost')
    expect(fixture.session.nextTickMs()).toBeUndefined()
  })

  test('[R9] is followed by an ack of everything consumed', () => {
    const fixture = ClientFixture.attached()
    fixture.receiveData('abc')
    fixture.consume(3)
    fixture.wait(10)
    fixture.reconnect()
    expect(fixture.takeSent()).toMatchObject([{ type: 'hello', attempt: 2, resuming: true, received: 3 }])
    fixture.welcome()
    expect(fixture.takeSent()).toEqual([{ type: 'ack', output: 3 }])
  })

  test('[R13] makes later events of the old connection be ignored', () => {
    const fixture = ClientFixture.attached()
    fixture.reconnect()
    fixture.receiveData('ghost', 'stdout', 1)
    fixture.receiveMessage({ type: 'error', code: 'replaced', message: 'x', fatal: true }, 1)
    fixture.run(fixture.session.closed(1, { code: 'replaced', message: 'x' }, fixture.nowMs))
    fixture.welcome()
    expect(fixture.status?.kind).toBe('attached')
    expect(fixture.session.received).toBe(0)
  })

  test('[R1] after which the server continues at another offset is a desync', () => {
    for (const wrong of [{ output: 2 }, { output: 4 }, { session: 's2' }]) {
      const fixture = ClientFixture.attached()
      fixture.receiveData('abc')
      fixture.reconnect()
      fixture.welcome(wrong)
      expect(failure(fixture)).toBe('desync')
    }
  })

  test('[E3] with an unknown error code is retried', () => {
    const fixture = ClientFixture.attached()
    fixture.receiveMessage({ type: 'error', code: 'brand_new', message: 'x', fatal: true })
    expect(fixture.status?.kind).toBe('reconnecting')
  })

  test('[R11] with an error that is not retryable fails', () => {
    const fixture = ClientFixture.attached()
    fixture.receiveMessage({ type: 'error', code: 'replaced', message: 'Elsewhere', fatal: true })
    expect(fixture.status).toMatchObject({
      kind: 'failed',
      error: { code: 'replaced', message: 'Elsewhere' },
    })
    expect(fixture.closed).toEqual([1])
  })

  test('[T1] is not caused by an error that is not fatal', () => {
    const fixture = ClientFixture.attached()
    fixture.receiveMessage({ type: 'error', code: 'line_too_long', message: 'Too long', fatal: false })
    expect(fixture.takeDelivered()).toEqual([
      { type: 'warning', code: 'line_too_long', message: 'Too long', stopReason: undefined },
    ])
    expect(fixture.status?.kind).toBe('attached')
  })

  test('[X13] reports a known stop reason and omits others', () => {
    const fixture = ClientFixture.attached()
    const stopping = { type: 'error', code: 'shutting_down', message: 'Stopping', fatal: false } as const
    fixture.receiveMessage({ ...stopping, reason: 'idle' })
    fixture.receiveMessage({ ...stopping, reason: 'brand_new' })
    expect(fixture.takeDelivered()).toMatchObject([{ stopReason: 'idle' }, { stopReason: undefined }])
  })
})

describe('the exit', () => {
  const exit = { type: 'exit', code: 3, signal: null, truncated: false } as const

  test('[X7] is reported when the consumer has consumed everything', () => {
    const fixture = ClientFixture.attached()
    fixture.receiveData('abc')
    fixture.receiveMessage({ ...exit, outputEnd: 3 })
    expect(fixture.status?.kind).toBe('attached')
    fixture.takeSent()
    fixture.consume(3)
    expect(fixture.status).toEqual({ kind: 'exited', exit: { ...exit, outputEnd: 3 } })
    expect(fixture.takeSent()).toEqual([{ type: 'ack', output: 3 }])
    expect(fixture.closed).toEqual([1])
  })

  test('[X7] needs no connection', () => {
    const fixture = ClientFixture.attached()
    fixture.receiveData('abc')
    fixture.receiveMessage({ ...exit, outputEnd: 3 })
    fixture.disconnect()
    fixture.wait(1_000_000)
    expect(fixture.connects).toHaveLength(1)
    fixture.consume(3)
    expect(fixture.status?.kind).toBe('exited')
  })

  test('[X7] [X13] is not lost when the server has stopped before it was consumed', () => {
    const fixture = ClientFixture.attached()
    fixture.receiveData('abc')
    fixture.receiveMessage({ ...exit, outputEnd: 3 })
    fixture.receiveMessage({ type: 'error', code: 'shutting_down', message: 'Stopping', fatal: true })
    fixture.wait(1_000_000)
    expect(fixture.connects).toHaveLength(1)
    expect(fixture.status?.kind).toBe('attached')
    fixture.consume(3)
    expect(fixture.status?.kind).toBe('exited')
  })

  test.each([2, 4])('[X2] at %d when 3 bytes were received is a desync', (outputEnd) => {
    const fixture = ClientFixture.attached()
    fixture.receiveData('abc')
    fixture.receiveMessage({ ...exit, outputEnd })
    expect(failure(fixture)).toBe('desync')
  })

  test('[I11] releases a caller that waits to write', () => {
    const fixture = ClientFixture.attached({ maxInputBytes: 1 })
    fixture.write('abc')
    fixture.receiveMessage({ ...exit, outputEnd: 0 })
    expect(fixture.takeDelivered()).toEqual([{ type: 'writable' }])
  })
})

describe('a heartbeat', () => {
  test('[H2] pings soon after the welcome and reports the round trip', () => {
    const fixture = ClientFixture.attached()
    fixture.wait(0)
    expect(fixture.takeSent()).toEqual([{ type: 'ping', id: 1 }])
    fixture.nowMs = 30
    fixture.receiveMessage({ type: 'pong', id: 1 })
    expect(fixture.takeDelivered()).toEqual([{ type: 'roundTrip', ms: 30 }])
  })

  test('[H3] that is not answered on a silent connection makes it reconnect', () => {
    const fixture = ClientFixture.attached()
    fixture.wait(0)
    fixture.receiveMessage({ type: 'pong', id: 1 })
    fixture.wait(15_000)
    expect(fixture.connects).toHaveLength(1)
    fixture.wait(10_050)
    expect(fixture.connects).toEqual([undefined, 's1'])
  })

  test('[H3] finds a dead connection while the consumer consumes nothing', () => {
    const fixture = ClientFixture.attached()
    fixture.wait(0)
    fixture.receiveData('abc')
    fixture.receiveMessage({ type: 'pong', id: 1 })
    fixture.wait(25_050)
    expect(fixture.connects).toEqual([undefined, 's1'])
  })

  test('[H6] reports silence before the connection counts as lost, and its end', () => {
    const fixture = ClientFixture.attached()
    fixture.wait(0)
    fixture.receiveMessage({ type: 'pong', id: 1 })
    fixture.wait(19_999)
    expect(fixture.takeDelivered()).toEqual([{ type: 'roundTrip', ms: 0 }])
    fixture.wait(1)
    expect(fixture.takeDelivered()).toEqual([{ type: 'silence', isSilent: true }])
    expect(fixture.status?.kind).toBe('attached')
    fixture.receiveMessage({ type: 'presence', driver: null, attachments: [], private: null })
    expect(fixture.takeDelivered()).toContainEqual({ type: 'silence', isSilent: false })
  })

  test('[H6] reports no silence after the connection is lost', () => {
    const fixture = ClientFixture.attached()
    fixture.wait(5_000)
    fixture.disconnect()
    expect(fixture.takeDelivered().at(-1)).toEqual({ type: 'silence', isSilent: false })
  })

  test('[H7] on probe pings at once and reconnects when the server stays silent', () => {
    const fixture = ClientFixture.attached()
    fixture.wait(0)
    fixture.receiveMessage({ type: 'pong', id: 1 })
    fixture.takeSent()
    fixture.run(fixture.session.probe(500, fixture.nowMs))
    expect(fixture.takeSent()).toEqual([{ type: 'ping', id: 2 }])
    fixture.wait(499)
    expect(fixture.status?.kind).toBe('attached')
    fixture.wait(1)
    expect(fixture.status?.kind).toBe('reconnecting')
  })

  test('[H7] on probe keeps a connection that is alive', () => {
    const fixture = ClientFixture.attached()
    fixture.run(fixture.session.probe(500, fixture.nowMs))
    fixture.wait(499)
    fixture.receiveData('x')
    fixture.wait(10_000)
    expect(fixture.status?.kind).toBe('attached')
  })

  test('[H7] on probe ends the back-off', () => {
    const fixture = ClientFixture.attached()
    for (let times = 0; times < 6; times += 1) {
      fixture.disconnect()
      fixture.wait(2_000)
    }
    fixture.disconnect()
    const before = fixture.connects.length
    fixture.run(fixture.session.probe(500, fixture.nowMs))
    expect(fixture.connects).toHaveLength(before + 1)
    fixture.open()
    fixture.welcome()
    expect(fixture.status?.kind).toBe('attached')
  })
})

describe('detaching', () => {
  test('[L7] is sent, and ends the session', () => {
    const fixture = ClientFixture.attached()
    fixture.run(fixture.session.detach())
    expect(fixture.takeSent()).toEqual([{ type: 'detach' }])
    expect(fixture.status?.kind).toBe('detached')
    fixture.run(fixture.session.detach())
    fixture.write('x')
    fixture.run(fixture.session.control({ type: 'eof' }))
    fixture.receiveData('x')
    fixture.consume(1)
    fixture.wait(100_000)
    expect(fixture.takeSent()).toEqual([])
    expect(fixture.takeDelivered()).toEqual([])
    expect(fixture.connects).toHaveLength(1)
  })

  test('[L7] works without a connection', () => {
    const fixture = ClientFixture.attached()
    fixture.disconnect()
    fixture.run(fixture.session.detach())
    expect(fixture.status?.kind).toBe('detached')
    expect(fixture.session.nextTickMs()).toBeUndefined()
  })
})

describe('presence', () => {
  test('[L10] is delivered', () => {
    const fixture = ClientFixture.attached()
    fixture.receiveMessage({ type: 'presence', driver: null, attachments: [], private: null })
    fixture.receiveMessage({ type: 'asked', by: 'a2' })
    fixture.receiveMessage({ type: 'resized', at: 0, cols: 90, rows: 30 })
    expect(fixture.takeDelivered().map(({ type }) => type)).toEqual(['presence', 'asked', 'resized'])
  })
})

test('[E6] undecodable messages end the session and never make the client throw', () => {
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
      const fixture = ClientFixture.attached()
      for (const wire of frames) fixture.receiveRaw(wire)
      fixture.write('x')
      fixture.wait(1_000)
    }),
    { numRuns: 1_000 },
  )
})
