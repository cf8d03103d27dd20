import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ROLES } from '../client-frames.ts'
import { MAX_MESSAGE_BYTES, MESSAGES_PER_SECOND } from '../limits.ts'
import { SessionFixture, type Peer } from './server-session.fixture.ts'

describe('a connection that exceeds a limit', () => {
  test('[B1] with a message over a mebibyte is closed', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    peer.sendRaw(new Uint8Array(MAX_MESSAGE_BYTES + 1))
    expect(peer.refusal()).toEqual({ error: 'frame_too_large', close: 1009 })
  })

  test('[B2] with more messages than allowed is closed, and can resume', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    for (let sent = 0; sent < 2 * MESSAGES_PER_SECOND - 1; sent += 1)
      peer.sendMessage({ type: 'ping', id: sent })
    expect(peer.received('error')).toEqual([])
    peer.sendMessage({ type: 'ping', id: 0 })
    expect(peer.refusal().error).toBe('rate_limited')
  })

  test('[B2] at a steady allowed rate stays', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    for (let sent = 0; sent < 4 * MESSAGES_PER_SECOND; sent += 1) {
      fixture.nowMs += 1000 / MESSAGES_PER_SECOND
      peer.ack(0)
    }
    expect(peer.received('error')).toEqual([])
  })

  test('[E1] gets the error, with its code as the close reason', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    peer.received()
    peer.sendRaw('nonsense')
    expect(peer.received()).toEqual([
      { type: 'error', code: 'bad_frame', message: 'Cannot decode frame', fatal: true },
      { type: 'closed', code: 4402, reason: 'bad_frame' },
    ])
  })

  test('[E5] gets a text that every client can decode', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    const message = `${'x'.repeat(2047)}😀${'y'.repeat(5000)}`
    fixture.run(fixture.session.closeAll({ code: 'internal', message }, 0))
    const [error] = peer.received('error')
    expect(error).toMatchObject({ code: 'internal' })
    expect(error !== undefined && 'message' in error ? error.message.length : 0).toBe(2048)
  })
})

describe('lastInputMs and lastOutputMs', () => {
  test('are the times of the last input and output', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach()
    expect([fixture.session.lastInputMs, fixture.session.lastOutputMs]).toEqual([null, null])
    fixture.nowMs = 5
    peer.sendInput('x')
    fixture.nowMs = 7
    fixture.output('x')
    expect([fixture.session.lastInputMs, fixture.session.lastOutputMs]).toEqual([5, 7])
  })
})

/** One thing that a hostile client, the network or the process does. */
const act = fc.oneof(
  fc.record({
    kind: fc.constant('attach' as const),
    identity: fc.integer({ min: 1, max: 4 }),
    role: fc.constantFrom(...ROLES),
    authority: fc.constantFrom(...ROLES),
    resuming: fc.boolean(),
    received: fc.integer({ min: 0, max: 30 }),
    take: fc.boolean(),
    window: fc.integer({ min: 1, max: 20 }),
    principal: fc.constantFrom('p', 'q'),
  }),
  fc.record({ kind: fc.constant('plain' as const) }),
  fc.record({
    kind: fc.constant('json' as const),
    who: fc.nat(9),
    message: fc.oneof(
      fc.record({ type: fc.constantFrom('take', 'ask', 'detach') }),
      fc.record({ type: fc.constant('give'), to: fc.constantFrom('a1', 'a2', 'a9') }),
      fc.record({
        type: fc.constant('ack'),
        output: fc.oneof(fc.nat(40), fc.constant(Number.MAX_SAFE_INTEGER)),
      }),
      fc.record({ type: fc.constant('roleSeen'), epoch: fc.nat(9) }),
      fc.record(
        {
          type: fc.constantFrom('eof', 'resize', 'signal'),
          seq: fc.nat(4),
          at: fc.nat(6),
          cols: fc.nat(5000),
          rows: fc.nat(5000),
          signal: fc.constantFrom('SIGINT', 'SIGX'),
        },
        { requiredKeys: ['type', 'seq', 'at'] },
      ),
      fc.json(),
    ),
  }),
  fc.record({ kind: fc.constant('input' as const), who: fc.nat(9), length: fc.nat(12) }),
  fc.record({
    kind: fc.constantFrom('disconnect' as const, 'block' as const, 'drain' as const),
    who: fc.nat(9),
  }),
  fc.record({ kind: fc.constant('output' as const), length: fc.integer({ min: 1, max: 12 }) }),
  fc.record({
    kind: fc.constantFrom(
      'settle' as const,
      'render' as const,
      'refuse' as const,
      'closeInput' as const,
      'exit' as const,
      'end' as const,
      'turn' as const,
    ),
  }),
  fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(1, 20, 1_000, 15_000, 70_000) }),
)

type Act = typeof act extends fc.Arbitrary<infer T> ? T : never

function perform(fixture: SessionFixture, peers: Peer[], step: Act): void {
  const peer = 'who' in step ? peers[step.who % Math.max(1, peers.length)] : undefined
  switch (step.kind) {
    case 'attach': {
      const { identity, role, authority, resuming, received, take, window, principal } = step
      peers.push(
        fixture.attach({
          identity,
          role,
          rights: { authority, take, principal },
          hello: { resuming, received, window },
        }),
      )
      return
    }
    case 'plain':
      peers.push(fixture.connect({ dialect: 'plain' }))
      return
    case 'json':
      peer?.sendRaw(typeof step.message === 'string' ? step.message : JSON.stringify(step.message))
      return
    case 'input':
      peer?.sendInput('i'.repeat(step.length))
      return
    case 'disconnect':
    case 'block':
    case 'drain':
      peer?.[step.kind]()
      return
    case 'output':
      fixture.output('o'.repeat(step.length))
      return
    case 'settle':
      fixture.settle(3)
      return
    case 'render':
      for (const { id } of Array.from(fixture.session.attachments.all())) fixture.render(id)
      return
    case 'refuse':
      fixture.run(fixture.session.inputRefused({ code: 'line_too_long', message: 'x' }))
      return
    case 'closeInput':
      fixture.run(fixture.session.inputClosed(fixture.nowMs))
      return
    case 'exit':
      fixture.exit()
      return
    case 'end':
      fixture.run(fixture.session.end(fixture.nowMs))
      return
    case 'turn':
      fixture.run(fixture.session.turn(fixture.nowMs))
      return
    case 'wait':
      fixture.wait(step.ms)
      return
  }
}

/** What holds whatever anybody does. */
function checkSession(fixture: SessionFixture): void {
  const { attachments, log, options } = fixture.session
  const drivers = [...attachments.all()].filter(({ role }) => role === 'driver')
  expect(drivers.length).toBeLessThanOrEqual(1)
  for (const driver of drivers) expect(attachments.lease.holder).toBe(driver.id)
  for (const attachment of attachments.all()) {
    expect(attachment.acked).toBeLessThanOrEqual(attachment.sentMax)
    expect(attachment.sent).toBeLessThanOrEqual(log.end)
    expect(attachment.inputSettled).toBeLessThanOrEqual(attachment.inputAccepted)
    expect(attachment.window.sizeBytes).toBeGreaterThan(0)
    if (attachment.dialect === 'plain') continue
    expect(attachment.inputAccepted - attachment.inputSettled).toBeLessThanOrEqual(
      options.limits.inputWindowBytes,
    )
  }
  expect(attachments.size).toBeLessThanOrEqual(options.limits.maxAttachments + 1)
}

test('[B7] no order of client, network and process events breaks a session', () => {
  const scenario = fc.record({
    mode: fc.constantFrom('pipe' as const, 'pty' as const),
    overflow: fc.constantFrom('block' as const, 'trim' as const),
    keepSeconds: fc.constantFrom(0, 1, 60),
    acts: fc.array(act, { maxLength: 40 }),
  })
  fc.assert(
    fc.property(scenario, ({ acts, ...options }) => {
      const limits = {
        logBytes: 20,
        inputWindowBytes: 10,
        turnBytes: 30,
        maxAttachments: 3,
        window: { startBytes: 6, minBytes: 2, maxBytes: 12 },
      }
      const fixture = new SessionFixture({ ...options, limits })
      const peers: Peer[] = []
      for (const step of acts) {
        perform(fixture, peers, step)
        checkSession(fixture)
        // Everything that was sent can be decoded by a client.
        for (const peer of peers) peer.received()
      }
      fixture.wait(10_000_000)
    }),
    { numRuns: 2_000 },
  )
})
