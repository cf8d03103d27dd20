import { describe, expect, test } from 'bun:test'
import { ERRORS } from '../errors.ts'
import { Bench, identityOf } from './server-session.fixture.ts'

describe('a first hello', () => {
  test('[C5] starts the process once, with its size and environment', () => {
    const bench = new Bench()
    bench.attach({ hello: { cols: 100, rows: 30, env: { TERM: 'xterm' } } })
    bench.attach()
    expect(bench.takeEffects()).toEqual([
      { do: 'start', env: expect.objectContaining({ TERM: 'xterm' }), cols: 100, rows: 30 },
    ])
  })

  test('[R1] is answered with where both streams begin, then an input ack, then who is there', () => {
    const bench = new Bench()
    const peer = bench.attach({ hello: { name: 'ann' } })
    expect(peer.hears()).toEqual([
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
      },
    ])
  })

  test('[C5] is not needed when the process was started on request', () => {
    const bench = new Bench()
    bench.run(bench.session.start({ env: {}, cols: 80, rows: 24 }, 0))
    bench.attach()
    expect(bench.takeEffects().map((effect) => effect.do)).toEqual(['start'])
  })

  test.each([0 + 2, 1000])('[V1] with version %d is refused', (version) => {
    const peer = new Bench().attach({ hello: { version } })
    expect(peer.refusal()).toEqual({ error: 'version_unsupported', close: ERRORS.version_unsupported.close })
  })
})

describe('authority', () => {
  test('[A1] hello may narrow the role of the URL', () => {
    const peer = new Bench().attach({ role: 'viewer' })
    expect(peer.hears('welcome')).toMatchObject([{ role: 'viewer', authority: 'driver' }])
  })

  test.each([
    ['viewer', 'collaborator'],
    ['viewer', 'driver'],
    ['collaborator', 'driver'],
  ] as const)('[A1] a %s who asks to be %s is refused', (authority, role) => {
    const bench = new Bench()
    const peer = bench.attach({ rights: { authority }, role })
    expect(peer.refusal().error).toBe('forbidden')
    expect(bench.takeEffects()).toEqual([])
  })

  test.each(['TERM', 'COLORTERM', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TZ'])(
    '[A3] %s may be set without exec',
    (name) => {
      const bench = new Bench()
      bench.attach({ rights: { exec: false }, hello: { env: { [name]: 'x' } } })
      expect(bench.takeEffects()).toMatchObject([{ do: 'start', env: { [name]: 'x' } }])
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
    const bench = new Bench()
    const env = Object.defineProperty({}, name, { value: 'x', enumerable: true })
    const peer = bench.attach({ rights: { exec: false }, hello: { env } })
    expect(peer.refusal().error).toBe('forbidden')
    expect(bench.takeEffects()).toEqual([])
  })

  test('[C5] who joins to watch starts nothing, and sees what others start from its first byte', () => {
    const bench = new Bench({ mode: 'pty' })
    const rights = { authority: 'viewer', waits: true } as const
    const watcher = bench.attach({ rights, hello: { cols: 11, rows: 7, env: { TERM: 'x' } } })
    expect(watcher.hears('welcome')).toMatchObject([{ role: 'viewer', output: 0 }])
    expect(bench.takeEffects()).toEqual([])
    bench.attach({ hello: { cols: 100, rows: 30 } })
    expect(bench.takeEffects()).toMatchObject([{ do: 'start', env: {}, cols: 100, rows: 30 }])
    bench.output('first')
    expect(watcher.hears('resized', 'stdout')).toMatchObject([{ cols: 100, rows: 30 }, { text: 'first' }])
  })

  test('[C6] a session that only watchers greet is gone without having started anything', () => {
    const bench = new Bench()
    const watcher = bench.attach({ rights: { authority: 'viewer', waits: true } })
    bench.wait(10_000)
    expect(watcher.refusal().error).toBe('hello_timeout')
    expect(bench.takeEffects()).toEqual([{ do: 'gone', wasStarted: false }])
  })

  test('[A4] a frame before hello closes the connection and reaches nothing', () => {
    const bench = new Bench()
    bench.attach()
    bench.takeEffects()
    const early = bench.connect()
    early.sends('rm -rf')
    expect(early.refusal()).toEqual({ error: 'bad_frame', close: 4402 })
    expect(bench.takeEffects()).toEqual([])
  })

  test('[A5] a second hello closes the connection', () => {
    const peer = new Bench().attach()
    peer.hello()
    expect(peer.refusal().error).toBe('bad_frame')
  })

  test('[A6] a resume with less authority is lowered and gives up its lease', () => {
    const bench = new Bench()
    bench.attach({ identity: 7 }).cut()
    const back = bench.attach({ identity: 7, rights: { authority: 'viewer' }, hello: { resuming: true } })
    expect(back.hears('welcome')).toMatchObject([{ role: 'viewer', authority: 'viewer' }])
    expect(bench.session.attachments.lease.holder).toBeNull()
  })

  test('[A11] a newcomer that names no role has the usual one, and may still take the lease', () => {
    const bench = new Bench()
    const rights = { defaultRole: 'collaborator' } as const
    const helper = bench.attach({ identity: 1, rights })
    expect(helper.hears('welcome')).toMatchObject([{ role: 'collaborator', authority: 'driver' }])
    expect(bench.session.attachments.lease.holder).toBeNull()
    const driver = bench.attach({ identity: 2, rights, role: 'driver' })
    expect(driver.hears('welcome')).toMatchObject([{ role: 'driver' }])
    helper.says({ type: 'take' })
    expect(bench.session.attachments.lease.holder).toBe(helper.id)
    const viewer = bench.attach({ identity: 3, rights: { ...rights, authority: 'viewer' } })
    expect(viewer.hears('welcome')).toMatchObject([{ role: 'viewer', authority: 'viewer' }])
  })

  test('[A11] a driver who resumes drives on, whatever newcomers usually are', () => {
    const bench = new Bench()
    bench.attach({ identity: 7 }).cut()
    const rights = { defaultRole: 'collaborator' } as const
    const back = bench.attach({ identity: 7, rights, hello: { resuming: true } })
    expect(back.hears('welcome')).toMatchObject([{ role: 'driver', authority: 'driver' }])
    expect(bench.session.attachments.lease.holder).toBe(back.id)
  })

  test("[A6] a collaborator lowered to viewer leaves the driver's lease alone", () => {
    const bench = new Bench()
    const driver = bench.attach({ identity: 1 })
    bench.attach({ identity: 2, role: 'collaborator' }).cut()
    bench.attach({ identity: 2, rights: { authority: 'viewer' }, hello: { resuming: true } })
    expect(bench.session.attachments.lease.holder).toBe(driver.id)
    driver.sends('x')
    expect(driver.hears('error', 'closed')).toEqual([])
  })
})

describe('a resume', () => {
  test('[R1] continues behind the last byte received', () => {
    const bench = new Bench()
    const first = bench.attach({ identity: 5 })
    bench.output('abcdef')
    expect(first.hearsOutput()).toBe('abcdef')
    first.cut()
    bench.output('ghi')
    const second = bench.attach({ identity: 5, hello: { resuming: true, received: 4 } })
    const heard = second.hears()
    expect(heard[0]).toMatchObject({ type: 'welcome', output: 4, role: 'driver' })
    expect(heard.filter((one) => one.type === 'stdout')).toEqual([{ type: 'stdout', text: 'efghi' }])
  })

  test('[R2] says how much input was accepted, not how much was written', () => {
    const bench = new Bench()
    const first = bench.attach({ identity: 5 })
    first.sends('12345')
    first.says({ type: 'signal', signal: 'SIGINT', seq: 1, at: 5 })
    bench.settle(2)
    first.cut()
    const second = bench.attach({ identity: 5, hello: { resuming: true } })
    expect(second.hears('welcome', 'ack')).toMatchObject([
      { type: 'welcome', input: { at: 5, seq: 1 } },
      { type: 'ack', input: 2, seq: 1 },
    ])
  })

  test('[R3] offsets count stdout and stderr together, without stream bytes', () => {
    const bench = new Bench()
    bench.attach({ identity: 5 }).cut()
    bench.output('ab')
    bench.output('cd', 'stderr')
    bench.output('ef')
    const late = bench.attach({ identity: 6 })
    expect(late.hears('stdout', 'stderr')).toEqual([
      { type: 'stdout', text: 'ab' },
      { type: 'stderr', text: 'cd' },
      { type: 'stdout', text: 'ef' },
    ])
    late.acks(6)
    expect(late.refusal().error).toBeUndefined()
  })

  test('[R4] works when the first welcome was lost', () => {
    const bench = new Bench()
    bench.attach({ identity: 5 }).cut()
    const again = bench.attach({ identity: 5, hello: { resuming: false } })
    expect(again.hears('welcome')).toMatchObject([{ attachment: 'a1', role: 'driver' }])
    expect(bench.session.attachments.size).toBe(1)
  })

  test('[R5] of somebody unknown is refused', () => {
    const peer = new Bench().attach({ hello: { resuming: true } })
    expect(peer.refusal()).toEqual({ error: 'resume_lost', close: ERRORS.resume_lost.close })
  })

  test('[R6] that claims more than was sent is refused', () => {
    const bench = new Bench()
    const first = bench.attach({ identity: 5 })
    bench.output('abc')
    first.cut()
    expect(bench.attach({ identity: 5, hello: { resuming: true, received: 4 } }).refusal().error).toBe(
      'desync',
    )
  })

  test('[A2] by another principal is refused like one of somebody unknown, and the owner keeps its place', () => {
    const bench = new Bench()
    const owner = bench.attach({ identity: 5 })
    const thief = bench.attach({ identity: 5, rights: { principal: 'q' }, hello: { resuming: true } })
    const stranger = bench.attach({ identity: 6, rights: { principal: 'q' }, hello: { resuming: true } })
    expect(thief.hears('error')).toEqual(stranger.hears('error'))
    expect(owner.hears('error', 'closed')).toEqual([])
    expect(owner.attachment?.role).toBe('driver')
  })

  test('[R7] closes the connection it replaces, and what that still says is not heard', () => {
    const bench = new Bench()
    const other = bench.attach({ identity: 4, role: 'collaborator' })
    const first = bench.attach({ identity: 5 })
    const second = bench.attach({ identity: 5, hello: { resuming: true } })
    expect(first.refusal()).toEqual({ error: 'replaced', close: ERRORS.replaced.close })
    bench.takeEffects()
    first.sends('late')
    first.cut()
    expect(bench.takeEffects()).toEqual([])
    expect(second.attachment).toBeDefined()
    expect(other.hears('error', 'closed')).toEqual([])
  })

  test('[R8] that is older than the connection there is refused, and that one stays', () => {
    const bench = new Bench()
    bench.attach({ identity: 5, hello: { attempt: 1 } }).cut()
    const third = bench.attach({ identity: 5, hello: { attempt: 3, resuming: true } })
    const late = bench.attach({ identity: 5, hello: { attempt: 2, resuming: true } })
    expect(late.refusal().error).toBe('replaced')
    expect(third.hears('error', 'closed')).toEqual([])
    expect(third.attachment).toBeDefined()
  })

  test('[R8] without a number always counts as newer', () => {
    const bench = new Bench()
    const first = bench.attach({ identity: 5 })
    const second = bench.attach({ identity: 5, hello: { resuming: true } })
    expect(first.refusal().error).toBe('replaced')
    expect(second.attachment).toBeDefined()
  })

  test('[R9] repeats the input ack, which may have been lost', () => {
    const bench = new Bench()
    const first = bench.attach({ identity: 5 })
    first.sends('abc')
    bench.settle(3)
    bench.wait(20)
    expect(first.hears('ack').at(-1)).toEqual({ type: 'ack', input: 3, seq: 0 })
    first.cut()
    const second = bench.attach({ identity: 5, hello: { resuming: true } })
    expect(second.hears('ack')).toEqual([{ type: 'ack', input: 3, seq: 0 }])
  })

  test('[L13] does not take the lease, whatever its URL says', () => {
    const bench = new Bench()
    bench.attach({ identity: 5, rights: { take: true } }).cut()
    const thief = bench.attach({ identity: 6, rights: { take: true } })
    const back = bench.attach({ identity: 5, rights: { take: true }, hello: { resuming: true } })
    expect(back.hears('welcome')).toMatchObject([{ role: 'viewer' }])
    expect(thief.attachment?.role).toBe('driver')
  })

  test('[W1] takes the window of its own hello', () => {
    const bench = new Bench()
    bench.attach({ identity: 5, hello: { window: 100 } }).cut()
    const back = bench.attach({ identity: 5, hello: { resuming: true, window: 3 } })
    bench.output('abcdef')
    expect(back.hearsOutput()).toBe('abc')
  })

  test('[X3] after the exit gets the rest and the exit again', () => {
    const bench = new Bench()
    const first = bench.attach({ identity: 5 })
    bench.output('abc')
    bench.exit(3)
    expect(first.hears('exit')).toHaveLength(1)
    first.cut()
    const second = bench.attach({ identity: 5, hello: { resuming: true, received: 1 } })
    expect(second.hears('stdout', 'exit')).toEqual([
      { type: 'stdout', text: 'bc' },
      { type: 'exit', code: 3, signal: null, truncated: false, outputEnd: 3 },
    ])
  })
})

describe('a full session', () => {
  test('[B3] makes room by forgetting whoever is gone longest', () => {
    const bench = new Bench({ limits: { maxAttachments: 3 } })
    bench.attach({ identity: 1 })
    const second = bench.attach({ identity: 2, role: 'viewer' })
    const third = bench.attach({ identity: 3, role: 'viewer' })
    third.cut()
    bench.wait(10)
    second.cut()
    bench.attach({ identity: 4, role: 'viewer' })
    expect(bench.attach({ identity: 3, hello: { resuming: true } }).refusal().error).toBe('resume_lost')
    expect(bench.attach({ identity: 2, hello: { resuming: true } }).refusal().error).toBeUndefined()
  })

  test('[E7] a refusal as too much says how long to wait, and no other does', () => {
    const bench = new Bench({ limits: { maxAttachments: 1 } })
    bench.attach({ identity: 1 })
    const told = (peer: ReturnType<Bench['attach']>): string =>
      peer.hears('error').map((error) => ('message' in error ? String(error.message) : ''))[0] ?? ''
    expect(told(bench.attach({ identity: 2, role: 'viewer' }))).toEndWith(': try again in 60 s')
    expect(told(bench.attach({ identity: 3, hello: { resuming: true } }))).not.toContain('again')
  })

  test('[B3] never forgets the driver, and refuses when nobody can make way', () => {
    const bench = new Bench({ limits: { maxAttachments: 2 } })
    bench.attach({ identity: 1 }).cut()
    bench.attach({ identity: 2, role: 'viewer' })
    expect(bench.attach({ identity: 3, role: 'viewer' }).refusal().error).toBe('too_many_attachments')
    expect(bench.attach({ identity: 1, hello: { resuming: true } }).hears('welcome')).toMatchObject([
      { role: 'driver' },
    ])
  })

  test('[B3] forgets those of whoever has the most, so that nobody is pushed out by a crowd', () => {
    const bench = new Bench({ limits: { maxAttachments: 5 } })
    bench.attach({ identity: 1 })
    bench.attach({ identity: 2, role: 'collaborator', rights: { principal: 'ann' } }).cut()
    bench.wait(10)
    for (let identity = 10; identity < 40; identity += 1) {
      bench.attach({ identity, role: 'viewer', rights: { principal: 'crowd' } }).cut()
    }
    const back = bench.attach({ identity: 2, rights: { principal: 'ann' }, hello: { resuming: true } })
    expect(back.hears('welcome')).toMatchObject([{ role: 'collaborator' }])
  })

  test('[B3] counts those who left input behind', () => {
    const bench = new Bench({ limits: { maxAttachments: 2, inputWindowBytes: 10 } })
    bench.attach({ identity: 1 })
    let refused = 0
    for (let identity = 10; identity < 40; identity += 1) {
      const peer = bench.attach({ identity, role: 'collaborator' })
      if (peer.refusal().error !== undefined) refused += 1
      else {
        peer.sends('0123456789')
        peer.says({ type: 'detach' })
      }
    }
    expect(refused).toBe(26)
    bench.settle(1000)
    expect(bench.attach({ identity: 50, role: 'collaborator' }).refusal().error).toBeUndefined()
  })

  test('[B4] takes no more connections than twice its attachments, greeted or not', () => {
    const bench = new Bench({ limits: { maxAttachments: 2 } })
    const silent = Array.from({ length: 4 }, () => bench.connect())
    expect(silent.map((peer) => peer.refusal().error)).toEqual([undefined, undefined, undefined, undefined])
    expect(bench.connect().refusal().error).toBe('too_many_attachments')
  })
})

describe('a plain connection', () => {
  test('[P1] is the driver of a new process at once', () => {
    const bench = new Bench({ keepSeconds: 0 })
    const peer = bench.connect({ dialect: 'plain' })
    expect(bench.takeEffects()).toEqual([{ do: 'start', env: {}, cols: 80, rows: 24 }])
    peer.sends('in')
    expect(bench.takeEffects()).toEqual([{ do: 'write', bytes: new TextEncoder().encode('in') }])
    bench.output('out')
    bench.output('err', 'stderr')
    expect(peer.hears()).toEqual([
      { type: 'stdout', text: 'out' },
      { type: 'stderr', text: 'err' },
    ])
  })

  test('[P9] cannot join a session', () => {
    const bench = new Bench()
    bench.attach()
    expect(bench.connect({ dialect: 'plain' }).refusal()).toEqual({
      error: 'needs_v1',
      close: ERRORS.needs_v1.close,
    })
  })

  test('[P7] cannot be robbed of its lease', () => {
    const bench = new Bench({ keepSeconds: 0 })
    const plain = bench.connect({ dialect: 'plain' })
    const guest = bench.attach({ identity: 3, rights: { take: true } })
    expect(guest.hears('welcome')).toMatchObject([{ role: 'viewer' }])
    guest.says({ type: 'take' })
    expect(guest.refusal().error).toBe('forbidden')
    plain.sends('x')
    expect(plain.hears()).toEqual([])
  })
})

test('[C10] attaching to a session that is gone is refused', () => {
  const bench = new Bench({ keepSeconds: 0 })
  bench.attach().cut()
  bench.exit()
  expect(bench.session.state.is).toBe('gone')
  expect(bench.connect().refusal()).toEqual({ error: 'session_gone', close: ERRORS.session_gone.close })
})

test('identities of the bench look like those of clients', () => {
  expect(identityOf(255)).toBe('000000000000000000000000000000ff')
})
