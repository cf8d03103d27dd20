import { describe, expect, test } from 'bun:test'
import { ERRORS } from '../errors.ts'
import { SessionFixture, identityOf } from './server-session.fixture.ts'

describe('a first hello', () => {
  test('[C5] starts the process once, with its size and environment', () => {
    const fixture = new SessionFixture()
    fixture.attach({ hello: { cols: 100, rows: 30, env: { TERM: 'xterm' } } })
    fixture.attach()
    expect(fixture.takeEffects()).toEqual([
      { do: 'start', env: expect.objectContaining({ TERM: 'xterm' }), cols: 100, rows: 30 },
    ])
  })

  test('[R1] is answered with welcome, input ack and presence', () => {
    const fixture = new SessionFixture()
    const peer = fixture.attach({ hello: { name: 'ann' } })
    expect(peer.received()).toEqual([
      {
        type: 'welcome',
        version: 1,
        session: 's1',
        attachment: 'a1',
        role: 'driver',
        authority: 'driver',
        epoch: 1,
        mode: 'pipe',
        output: 0,
        input: { at: 0, seq: 0 },
        inputWindow: 256 * 1024,
        keepSeconds: 60,
        cols: 80,
        rows: 24,
      },
      { type: 'ack', input: 0, seq: 0 },
      {
        type: 'presence',
        driver: 'a1',
        attachments: [{ id: 'a1', role: 'driver', name: 'ann', connected: true }],
        private: null,
      },
    ])
  })

  test('[C5] is not needed when the process was started on request', () => {
    const fixture = new SessionFixture()
    fixture.run(fixture.session.start({ env: {}, cols: 80, rows: 24 }, 0))
    fixture.attach()
    expect(fixture.takeEffects().map((effect) => effect.do)).toEqual(['start'])
  })

  test.each([0 + 2, 1000])('[V1] with version %d is refused', (version) => {
    const peer = new SessionFixture().attach({ hello: { version } })
    expect(peer.refusal()).toEqual({ error: 'version_unsupported', close: ERRORS.version_unsupported.close })
  })
})

describe('authority', () => {
  test('[A1] hello may narrow the role of the URL', () => {
    const peer = new SessionFixture().attach({ role: 'viewer' })
    expect(peer.received('welcome')).toMatchObject([{ role: 'viewer', authority: 'driver' }])
  })

  test.each([
    ['viewer', 'collaborator'],
    ['viewer', 'driver'],
    ['collaborator', 'driver'],
  ] as const)('[A1] a %s who asks to be %s is refused', (authority, role) => {
    const fixture = new SessionFixture()
    const peer = fixture.attach({ rights: { authority }, role })
    expect(peer.refusal().error).toBe('forbidden')
    expect(fixture.takeEffects()).toEqual([])
  })

  test.each(['TERM', 'COLORTERM', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TZ'])(
    '[A3] %s may be set without exec',
    (name) => {
      const fixture = new SessionFixture()
      fixture.attach({ rights: { exec: false }, hello: { env: { [name]: 'x' } } })
      expect(fixture.takeEffects()).toMatchObject([{ do: 'start', env: { [name]: 'x' } }])
    },
  )

  test.each([
    'LD_PRELOAD',
    'PATH',
    'BASH_ENV',
    'TERMINFO',
    'LC_',
    'LC_ALL2',
    'LANGUAGE',
    '__proto__',
    'term',
  ])('[A3] %s may not be set without exec', (name) => {
    const fixture = new SessionFixture()
    const env = Object.defineProperty({}, name, { value: 'x', enumerable: true })
    const peer = fixture.attach({ rights: { exec: false }, hello: { env } })
    expect(peer.refusal().error).toBe('forbidden')
    expect(fixture.takeEffects()).toEqual([])
  })

  test('[C5] a joining viewer starts nothing, and gets all output of the process that another starts', () => {
    const fixture = new SessionFixture({ mode: 'pty' })
    const rights = { authority: 'viewer', waits: true } as const
    const watcher = fixture.attach({ rights, hello: { cols: 11, rows: 7, env: { TERM: 'x' } } })
    expect(watcher.received('welcome')).toMatchObject([{ role: 'viewer', output: 0 }])
    expect(fixture.takeEffects()).toEqual([])
    fixture.attach({ hello: { cols: 100, rows: 30 } })
    expect(fixture.takeEffects()).toMatchObject([{ do: 'start', env: {}, cols: 100, rows: 30 }])
    fixture.output('first')
    expect(watcher.received('resized', 'stdout')).toMatchObject([{ cols: 100, rows: 30 }, { text: 'first' }])
  })

  test('[C6] a session with viewers only is removed without having started a process', () => {
    const fixture = new SessionFixture()
    const watcher = fixture.attach({ rights: { authority: 'viewer', waits: true } })
    fixture.wait(10_000)
    expect(watcher.refusal().error).toBe('hello_timeout')
    expect(fixture.takeEffects()).toEqual([{ do: 'gone', wasStarted: false }])
  })

  test('[A4] a frame before hello closes the connection without effect', () => {
    const fixture = new SessionFixture()
    fixture.attach()
    fixture.takeEffects()
    const early = fixture.connect()
    early.sendInput('rm -rf')
    expect(early.refusal()).toEqual({ error: 'bad_frame', close: 4402 })
    expect(fixture.takeEffects()).toEqual([])
  })

  test('[A5] a second hello closes the connection', () => {
    const peer = new SessionFixture().attach()
    peer.hello()
    expect(peer.refusal().error).toBe('bad_frame')
  })

  test('[A6] a resume with less authority lowers the role and frees the lease', () => {
    const fixture = new SessionFixture()
    fixture.attach({ identity: 7 }).disconnect()
    const back = fixture.attach({ identity: 7, rights: { authority: 'viewer' }, hello: { resuming: true } })
    expect(back.received('welcome')).toMatchObject([{ role: 'viewer', authority: 'viewer' }])
    expect(fixture.session.attachments.lease.holder).toBeNull()
  })

  test('[A11] a new attachment without a role gets the default role, and may take the lease', () => {
    const fixture = new SessionFixture()
    const rights = { defaultRole: 'collaborator' } as const
    const helper = fixture.attach({ identity: 1, rights })
    expect(helper.received('welcome')).toMatchObject([{ role: 'collaborator', authority: 'driver' }])
    expect(fixture.session.attachments.lease.holder).toBeNull()
    const driver = fixture.attach({ identity: 2, rights, role: 'driver' })
    expect(driver.received('welcome')).toMatchObject([{ role: 'driver' }])
    helper.sendMessage({ type: 'take' })
    expect(fixture.session.attachments.lease.holder).toBe(helper.id)
    const viewer = fixture.attach({ identity: 3, rights: { ...rights, authority: 'viewer' } })
    expect(viewer.received('welcome')).toMatchObject([{ role: 'viewer', authority: 'viewer' }])
  })

  test('[A11] a driver that resumes keeps driving, whatever the default role', () => {
    const fixture = new SessionFixture()
    fixture.attach({ identity: 7 }).disconnect()
    const rights = { defaultRole: 'collaborator' } as const
    const back = fixture.attach({ identity: 7, rights, hello: { resuming: true } })
    expect(back.received('welcome')).toMatchObject([{ role: 'driver', authority: 'driver' }])
    expect(fixture.session.attachments.lease.holder).toBe(back.id)
  })

  test("[A6] a collaborator lowered to viewer leaves the driver's lease alone", () => {
    const fixture = new SessionFixture()
    const driver = fixture.attach({ identity: 1 })
    fixture.attach({ identity: 2, role: 'collaborator' }).disconnect()
    fixture.attach({ identity: 2, rights: { authority: 'viewer' }, hello: { resuming: true } })
    expect(fixture.session.attachments.lease.holder).toBe(driver.id)
    driver.sendInput('x')
    expect(driver.received('error', 'closed')).toEqual([])
  })
})

describe('a resume', () => {
  test('[R1] continues after the last byte received', () => {
    const fixture = new SessionFixture()
    const first = fixture.attach({ identity: 5 })
    fixture.output('abcdef')
    expect(first.receivedOutput()).toBe('abcdef')
    first.disconnect()
    fixture.output('ghi')
    const second = fixture.attach({ identity: 5, hello: { resuming: true, received: 4 } })
    const received = second.received()
    expect(received[0]).toMatchObject({ type: 'welcome', output: 4, role: 'driver' })
    expect(received.filter((one) => one.type === 'stdout')).toEqual([{ type: 'stdout', text: 'efghi' }])
  })

  test('[R2] reports how much input was accepted, not how much was written', () => {
    const fixture = new SessionFixture()
    const first = fixture.attach({ identity: 5 })
    first.sendInput('12345')
    first.sendMessage({ type: 'signal', signal: 'SIGINT', seq: 1, at: 5 })
    fixture.settle(2)
    first.disconnect()
    const second = fixture.attach({ identity: 5, hello: { resuming: true } })
    expect(second.received('welcome', 'ack')).toMatchObject([
      { type: 'welcome', input: { at: 5, seq: 1 } },
      { type: 'ack', input: 2, seq: 1 },
    ])
  })

  test('[R3] offsets count stdout and stderr together, without stream bytes', () => {
    const fixture = new SessionFixture()
    fixture.attach({ identity: 5 }).disconnect()
    fixture.output('ab')
    fixture.output('cd', 'stderr')
    fixture.output('ef')
    const late = fixture.attach({ identity: 6 })
    expect(late.received('stdout', 'stderr')).toEqual([
      { type: 'stdout', text: 'ab' },
      { type: 'stderr', text: 'cd' },
      { type: 'stdout', text: 'ef' },
    ])
    late.ack(6)
    expect(late.refusal().error).toBeUndefined()
  })

  test('[R4] works when the first welcome was lost', () => {
    const fixture = new SessionFixture()
    fixture.attach({ identity: 5 }).disconnect()
    const again = fixture.attach({ identity: 5, hello: { resuming: false } })
    expect(again.received('welcome')).toMatchObject([{ attachment: 'a1', role: 'driver' }])
    expect(fixture.session.attachments.size).toBe(1)
  })

  test('[R5] of an unknown identity is refused', () => {
    const peer = new SessionFixture().attach({ hello: { resuming: true } })
    expect(peer.refusal()).toEqual({ error: 'resume_lost', close: ERRORS.resume_lost.close })
  })

  test('[R6] that claims more than was sent is refused', () => {
    const fixture = new SessionFixture()
    const first = fixture.attach({ identity: 5 })
    fixture.output('abc')
    first.disconnect()
    expect(fixture.attach({ identity: 5, hello: { resuming: true, received: 4 } }).refusal().error).toBe(
      'desync',
    )
  })

  test('[A2] by another principal is refused like an unknown identity, and the owner stays attached', () => {
    const fixture = new SessionFixture()
    const owner = fixture.attach({ identity: 5 })
    const thief = fixture.attach({ identity: 5, rights: { principal: 'q' }, hello: { resuming: true } })
    const stranger = fixture.attach({ identity: 6, rights: { principal: 'q' }, hello: { resuming: true } })
    expect(thief.received('error')).toEqual(stranger.received('error'))
    expect(owner.received('error', 'closed')).toEqual([])
    expect(owner.attachment?.role).toBe('driver')
  })

  test('[R7] closes the connection it replaces and ignores its later messages', () => {
    const fixture = new SessionFixture()
    const other = fixture.attach({ identity: 4, role: 'collaborator' })
    const first = fixture.attach({ identity: 5 })
    const second = fixture.attach({ identity: 5, hello: { resuming: true } })
    expect(first.refusal()).toEqual({ error: 'replaced', close: ERRORS.replaced.close })
    fixture.takeEffects()
    first.sendInput('late')
    first.disconnect()
    expect(fixture.takeEffects()).toEqual([])
    expect(second.attachment).toBeDefined()
    expect(other.received('error', 'closed')).toEqual([])
  })

  test('[R8] that is older than the current connection is refused', () => {
    const fixture = new SessionFixture()
    fixture.attach({ identity: 5, hello: { attempt: 1 } }).disconnect()
    const third = fixture.attach({ identity: 5, hello: { attempt: 3, resuming: true } })
    const late = fixture.attach({ identity: 5, hello: { attempt: 2, resuming: true } })
    expect(late.refusal().error).toBe('replaced')
    expect(third.received('error', 'closed')).toEqual([])
    expect(third.attachment).toBeDefined()
  })

  test('[R8] without a number always counts as newer', () => {
    const fixture = new SessionFixture()
    const first = fixture.attach({ identity: 5 })
    const second = fixture.attach({ identity: 5, hello: { resuming: true } })
    expect(first.refusal().error).toBe('replaced')
    expect(second.attachment).toBeDefined()
  })

  test('[R9] repeats the input ack, which may have been lost', () => {
    const fixture = new SessionFixture()
    const first = fixture.attach({ identity: 5 })
    first.sendInput('abc')
    fixture.settle(3)
    fixture.wait(20)
    expect(first.received('ack').at(-1)).toEqual({ type: 'ack', input: 3, seq: 0 })
    first.disconnect()
    const second = fixture.attach({ identity: 5, hello: { resuming: true } })
    expect(second.received('ack')).toEqual([{ type: 'ack', input: 3, seq: 0 }])
  })

  test('[L13] does not take the lease, whatever its URL says', () => {
    const fixture = new SessionFixture()
    fixture.attach({ identity: 5, rights: { take: true } }).disconnect()
    const thief = fixture.attach({ identity: 6, rights: { take: true } })
    const back = fixture.attach({ identity: 5, rights: { take: true }, hello: { resuming: true } })
    expect(back.received('welcome')).toMatchObject([{ role: 'viewer' }])
    expect(thief.attachment?.role).toBe('driver')
  })

  test('[W1] uses the window of its own hello', () => {
    const fixture = new SessionFixture()
    fixture.attach({ identity: 5, hello: { window: 100 } }).disconnect()
    const back = fixture.attach({ identity: 5, hello: { resuming: true, window: 3 } })
    fixture.output('abcdef')
    expect(back.receivedOutput()).toBe('abc')
  })

  test('[X3] after the exit gets the rest and the exit again', () => {
    const fixture = new SessionFixture()
    const first = fixture.attach({ identity: 5 })
    fixture.output('abc')
    fixture.exit(3)
    expect(first.received('exit')).toHaveLength(1)
    first.disconnect()
    const second = fixture.attach({ identity: 5, hello: { resuming: true, received: 1 } })
    expect(second.received('stdout', 'exit')).toEqual([
      { type: 'stdout', text: 'bc' },
      { type: 'exit', code: 3, signal: null, truncated: false, outputEnd: 3 },
    ])
  })
})

describe('a full session', () => {
  test('[B3] evicts the longest detached attachment', () => {
    const fixture = new SessionFixture({ limits: { maxAttachments: 3 } })
    fixture.attach({ identity: 1 })
    const second = fixture.attach({ identity: 2, role: 'viewer' })
    const third = fixture.attach({ identity: 3, role: 'viewer' })
    third.disconnect()
    fixture.wait(10)
    second.disconnect()
    fixture.attach({ identity: 4, role: 'viewer' })
    expect(fixture.attach({ identity: 3, hello: { resuming: true } }).refusal().error).toBe('resume_lost')
    expect(fixture.attach({ identity: 2, hello: { resuming: true } }).refusal().error).toBeUndefined()
  })

  test('[E7] only rate limit errors contain the time to wait', () => {
    const fixture = new SessionFixture({ limits: { maxAttachments: 1 } })
    fixture.attach({ identity: 1 })
    const told = (peer: ReturnType<SessionFixture['attach']>): string =>
      peer.received('error').map((error) => ('message' in error ? String(error.message) : ''))[0] ?? ''
    expect(told(fixture.attach({ identity: 2, role: 'viewer' }))).toEndWith(': try again in 60 s')
    expect(told(fixture.attach({ identity: 3, hello: { resuming: true } }))).not.toContain('again')
  })

  test('[B3] never evicts the driver, and refuses when there is no candidate', () => {
    const fixture = new SessionFixture({ limits: { maxAttachments: 2 } })
    fixture.attach({ identity: 1 }).disconnect()
    fixture.attach({ identity: 2, role: 'viewer' })
    expect(fixture.attach({ identity: 3, role: 'viewer' }).refusal().error).toBe('too_many_attachments')
    expect(fixture.attach({ identity: 1, hello: { resuming: true } }).received('welcome')).toMatchObject([
      { role: 'driver' },
    ])
  })

  test('[B3] evicts attachments of the largest account', () => {
    const fixture = new SessionFixture({ limits: { maxAttachments: 5 } })
    fixture.attach({ identity: 1 })
    fixture.attach({ identity: 2, role: 'collaborator', rights: { principal: 'ann' } }).disconnect()
    fixture.wait(10)
    for (let identity = 10; identity < 40; identity += 1) {
      fixture.attach({ identity, role: 'viewer', rights: { principal: 'crowd' } }).disconnect()
    }
    const back = fixture.attach({ identity: 2, rights: { principal: 'ann' }, hello: { resuming: true } })
    expect(back.received('welcome')).toMatchObject([{ role: 'collaborator' }])
  })

  test('[B3] counts detached attachments with unread input', () => {
    const fixture = new SessionFixture({ limits: { maxAttachments: 2, inputWindowBytes: 10 } })
    fixture.attach({ identity: 1 })
    let refused = 0
    for (let identity = 10; identity < 40; identity += 1) {
      const peer = fixture.attach({ identity, role: 'collaborator' })
      if (peer.refusal().error !== undefined) refused += 1
      else {
        peer.sendInput('0123456789')
        peer.sendMessage({ type: 'detach' })
      }
    }
    expect(refused).toBe(26)
    fixture.settle(1000)
    expect(fixture.attach({ identity: 50, role: 'collaborator' }).refusal().error).toBeUndefined()
  })

  test('[B4] accepts at most twice as many connections as attachments', () => {
    const fixture = new SessionFixture({ limits: { maxAttachments: 2 } })
    const silent = Array.from({ length: 4 }, () => fixture.connect())
    expect(silent.map((peer) => peer.refusal().error)).toEqual([undefined, undefined, undefined, undefined])
    expect(fixture.connect().refusal().error).toBe('too_many_attachments')
  })
})

describe('a plain connection', () => {
  test('[P1] is the driver of a new process at once', () => {
    const fixture = new SessionFixture({ keepSeconds: 0 })
    const peer = fixture.connect({ dialect: 'plain' })
    expect(fixture.takeEffects()).toEqual([{ do: 'start', env: {}, cols: 80, rows: 24 }])
    peer.sendInput('in')
    expect(fixture.takeEffects()).toEqual([{ do: 'write', bytes: new TextEncoder().encode('in') }])
    fixture.output('out')
    fixture.output('err', 'stderr')
    expect(peer.received()).toEqual([
      { type: 'stdout', text: 'out' },
      { type: 'stderr', text: 'err' },
    ])
  })

  test('[P9] cannot join a session', () => {
    const fixture = new SessionFixture()
    fixture.attach()
    expect(fixture.connect({ dialect: 'plain' }).refusal()).toEqual({
      error: 'needs_v1',
      close: ERRORS.needs_v1.close,
    })
  })

  test('[P7] cannot lose its lease to another attachment', () => {
    const fixture = new SessionFixture({ keepSeconds: 0 })
    const plain = fixture.connect({ dialect: 'plain' })
    const guest = fixture.attach({ identity: 3, rights: { take: true } })
    expect(guest.received('welcome')).toMatchObject([{ role: 'viewer' }])
    guest.sendMessage({ type: 'take' })
    expect(guest.refusal().error).toBe('forbidden')
    plain.sendInput('x')
    expect(plain.received()).toEqual([])
  })
})

test('[C10] attaching to a session that has ended is refused', () => {
  const fixture = new SessionFixture({ keepSeconds: 0 })
  fixture.attach().disconnect()
  fixture.exit()
  expect(fixture.session.state.kind).toBe('gone')
  expect(fixture.connect().refusal()).toEqual({ error: 'session_gone', close: ERRORS.session_gone.close })
})

test('identities of the fixture have the format of real ones', () => {
  expect(identityOf(255)).toBe('000000000000000000000000000000ff')
})
