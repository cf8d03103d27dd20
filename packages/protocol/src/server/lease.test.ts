import { describe, expect, test } from 'bun:test'
import { Lease } from './lease.ts'
import { Bench } from './server-session.fixture.ts'

describe('a lease', () => {
  test('[L1] has a new epoch for every change of hands', () => {
    const lease = new Lease()
    lease.grant('a')
    lease.grant('b')
    lease.free()
    lease.free()
    expect(lease.epoch).toBe(3)
    expect(lease.holder).toBeNull()
  })

  test('[L6] that is reserved can be claimed when the time is over', () => {
    const lease = new Lease()
    expect(lease.isClaimable(0)).toBe(true)
    lease.grant('a')
    expect(lease.isClaimable(0)).toBe(false)
    lease.reserve(100)
    expect(lease.isClaimable(99)).toBe(false)
    expect(lease.isClaimable(100)).toBe(true)
    lease.confirm()
    expect(lease.isClaimable(1_000)).toBe(false)
  })
})

describe('a second driver', () => {
  test('[L2] joins as viewer', () => {
    const bench = new Bench()
    bench.attach({ identity: 1 })
    expect(bench.attach({ identity: 2 }).hears('welcome')).toMatchObject([
      { role: 'viewer', authority: 'driver' },
    ])
  })

  test('[L3] with take in its URL gets the lease, and the first one is told where its input ended', () => {
    const bench = new Bench()
    const first = bench.attach({ identity: 1 })
    first.sends('abc')
    first.hears()
    const second = bench.attach({ identity: 2, rights: { take: true } })
    expect(second.hears('welcome')).toMatchObject([{ role: 'driver', epoch: 2 }])
    expect(first.hears('role')).toEqual([
      { type: 'role', role: 'viewer', epoch: 2, input: { at: 3, seq: 0 } },
    ])
  })

  test('[L3] takes the lease with a message, and both are told', () => {
    const bench = new Bench()
    const first = bench.attach({ identity: 1 })
    const second = bench.attach({ identity: 2 })
    second.says({ type: 'take' })
    expect(first.hears('role')).toMatchObject([{ role: 'viewer', epoch: 2 }])
    expect(second.hears('role')).toMatchObject([{ role: 'driver', epoch: 2 }])
    second.says({ type: 'take' })
    expect(second.hears('role')).toEqual([])
  })

  test('[L6] finds the lease reserved during the grace and free behind it', () => {
    const bench = new Bench()
    bench.attach({ identity: 1 }).cut()
    bench.wait(29_000)
    expect(bench.attach({ identity: 2 }).hears('welcome')).toMatchObject([{ role: 'viewer' }])
    bench.wait(2_000)
    const third = bench.attach({ identity: 3 })
    expect(third.hears('welcome')).toMatchObject([{ role: 'driver' }])
    expect(bench.attach({ identity: 1, hello: { resuming: true } }).hears('welcome')).toMatchObject([
      { role: 'viewer' },
    ])
  })

  test('[L6] that comes back within the grace drives on', () => {
    const bench = new Bench()
    bench.attach({ identity: 1 }).cut()
    bench.wait(29_000)
    expect(bench.attach({ identity: 1, hello: { resuming: true } }).hears('welcome')).toMatchObject([
      { role: 'driver', epoch: 1 },
    ])
  })
})

describe('take', () => {
  test.each(['viewer', 'collaborator'] as const)('[L11] by one who may be %s is refused', (authority) => {
    const bench = new Bench()
    const driver = bench.attach({ identity: 1 })
    const other = bench.attach({ identity: 2, rights: { authority } })
    other.says({ type: 'take' })
    expect(other.refusal().error).toBe('forbidden')
    expect(driver.hears('role')).toEqual([])
  })

  test('[F4] gives a new driver its own time to show progress', () => {
    const bench = new Bench({ overflow: 'trim', limits: { logBytes: 10 } })
    bench.attach({ identity: 1, hello: { window: 4 } })
    const viewer = bench.attach({ identity: 2, hello: { window: 4 } })
    bench.output('abcd')
    bench.wait(45_000)
    viewer.says({ type: 'take' })
    bench.wait(20_000)
    expect(viewer.attachment?.isStalled).toBe(false)
    expect(bench.session.isPaused).toBe(true)
  })
})

describe('give', () => {
  test('[L4] hands the lease to another that may drive', () => {
    const bench = new Bench()
    const first = bench.attach({ identity: 1 })
    const second = bench.attach({ identity: 2 })
    first.says({ type: 'give', to: second.id })
    expect(second.attachment?.role).toBe('driver')
    expect(first.attachment?.role).toBe('viewer')
  })

  test('[L4] does nothing for one that is unknown, away, may not drive, or is oneself', () => {
    const bench = new Bench()
    const first = bench.attach({ identity: 1 })
    const away = bench.attach({ identity: 2 })
    const { id } = away
    away.cut()
    const viewer = bench.attach({ identity: 3, rights: { authority: 'viewer' } })
    for (const to of ['a99', id, viewer.id, first.id]) first.says({ type: 'give', to })
    expect(first.attachment?.role).toBe('driver')
    expect(bench.session.attachments.lease.epoch).toBe(1)
    expect(first.hears('error', 'closed', 'role')).toEqual([])
  })

  test('[L4] from one that has just lost the lease does nothing', () => {
    const bench = new Bench()
    const first = bench.attach({ identity: 1 })
    const second = bench.attach({ identity: 2 })
    const third = bench.attach({ identity: 3 })
    second.says({ type: 'take' })
    first.says({ type: 'give', to: third.id })
    expect(second.attachment?.role).toBe('driver')
    expect(first.hears('error', 'closed')).toEqual([])
  })
})

describe('ask', () => {
  test('[L5] reaches the driver with a name', () => {
    const bench = new Bench()
    const driver = bench.attach({ identity: 1 })
    const viewer = bench.attach({ identity: 2, role: 'viewer' })
    viewer.says({ type: 'ask' })
    driver.says({ type: 'ask' })
    expect(driver.hears('asked')).toEqual([{ type: 'asked', by: viewer.id }])
  })

  test('[L5] is granted where nobody drives, to the first who asks and may', () => {
    const bench = new Bench()
    const driver = bench.attach({ identity: 1 })
    const [first, second] = [bench.attach({ identity: 2 }), bench.attach({ identity: 3 })]
    const viewer = bench.attach({ identity: 4, rights: { authority: 'viewer' } })
    driver.says({ type: 'detach' })
    viewer.says({ type: 'ask' })
    expect(viewer.attachment?.role).toBe('viewer')
    first.says({ type: 'ask' })
    second.says({ type: 'ask' })
    expect([first.attachment?.role, second.attachment?.role]).toEqual(['driver', 'viewer'])
    expect(first.hears('asked')).toEqual([{ type: 'asked', by: second.id }])
  })

  test('[L5] is not granted while the lease is kept for who was cut off', () => {
    const bench = new Bench()
    const driver = bench.attach({ identity: 1 })
    const other = bench.attach({ identity: 2 })
    driver.cut()
    other.says({ type: 'ask' })
    expect(other.attachment?.role).toBe('viewer')
  })
})

describe('detach', () => {
  test('[L7] frees the lease at once, closes normally and cannot be resumed', () => {
    const bench = new Bench()
    const first = bench.attach({ identity: 1 })
    first.says({ type: 'detach' })
    expect(first.hears('closed')).toEqual([{ type: 'closed', code: 1000, reason: '' }])
    expect(bench.attach({ identity: 2 }).hears('welcome')).toMatchObject([{ role: 'driver' }])
    expect(bench.attach({ identity: 1, hello: { resuming: true } }).refusal().error).toBe('resume_lost')
  })
})

test('[L7] a hello that is late does not bring back one who left, however many leave', () => {
  const bench = new Bench()
  bench.attach({ identity: 1 })
  for (let identity = 100; identity < 1_000; identity += 1) {
    bench.attach({ identity, role: 'viewer' }).says({ type: 'detach' })
    const late = bench.attach({ identity, hello: { resuming: false }, rights: { take: true } })
    expect(late.refusal().error).toBe('resume_lost')
  }
  expect(bench.session.attachments.size).toBe(1)
})

describe('what a role may not do', () => {
  test('[L8] input of a viewer is refused and reaches nothing', () => {
    const bench = new Bench()
    bench.attach({ identity: 1 })
    bench.takeEffects()
    const viewer = bench.attach({ identity: 2, role: 'viewer' })
    viewer.sends('x')
    expect(viewer.refusal()).toEqual({ error: 'role_refused', close: 4430 })
    expect(bench.takeEffects()).toEqual([])
  })

  test.each(['viewer', 'collaborator'] as const)(
    '[L8] resize, signal and eof of a %s are refused',
    (role) => {
      const applySequenced = { seq: 1, at: 0 }
      for (const message of [
        { type: 'resize', cols: 1, rows: 1, ...applySequenced },
        { type: 'signal', signal: 'SIGKILL', ...applySequenced },
        { type: 'eof', ...applySequenced },
      ] as const) {
        const bench = new Bench({ mode: 'pty' })
        bench.attach({ identity: 1 })
        const other = bench.attach({ identity: 2, role })
        bench.takeEffects()
        other.says(message)
        expect(other.refusal().error).toBe('role_refused')
        expect(bench.takeEffects()).toEqual([])
      }
    },
  )

  test('[L8] a collaborator may type', () => {
    const bench = new Bench()
    bench.attach({ identity: 1 })
    const other = bench.attach({ identity: 2, role: 'collaborator' })
    bench.takeEffects()
    other.sends('x')
    expect(bench.takeEffects()).toMatchObject([{ do: 'write' }])
  })
})

describe('a driver that lost the lease', () => {
  test('[L9] is not refused for what it had sent, which is discarded', () => {
    const bench = new Bench()
    const first = bench.attach({ identity: 1 })
    first.sends('abc')
    const second = bench.attach({ identity: 2, rights: { take: true } })
    bench.takeEffects()
    first.sends('late')
    first.says({ type: 'signal', signal: 'SIGINT', seq: 1, at: 7 })
    expect(bench.takeEffects()).toEqual([])
    expect(first.hears('error', 'closed')).toEqual([])
    first.says({ type: 'roleSeen', epoch: 2 })
    first.sends('more')
    expect(first.refusal().error).toBe('role_refused')
    expect(second.attachment?.role).toBe('driver')
  })

  test('[L9] and got it back writes only what it sent after seeing that', () => {
    const bench = new Bench()
    const first = bench.attach({ identity: 1 })
    const second = bench.attach({ identity: 2, rights: { take: true } })
    second.says({ type: 'give', to: first.id })
    bench.takeEffects()
    first.sends('from the first time')
    first.says({ type: 'roleSeen', epoch: 2 })
    first.says({ type: 'roleSeen', epoch: 3 })
    first.sends('new')
    expect(bench.takeEffects()).toEqual([{ do: 'write', bytes: new TextEncoder().encode('new') }])
  })

  test('[L9] does not hear again by confirming an epoch before it happened', () => {
    const bench = new Bench()
    const first = bench.attach({ identity: 1 })
    first.says({ type: 'roleSeen', epoch: 1_000 })
    bench.attach({ identity: 2, rights: { take: true } })
    bench.takeEffects()
    first.sends('late')
    expect(bench.takeEffects()).toEqual([])
    expect(first.hears('error', 'closed')).toEqual([])
  })
})

describe('presence', () => {
  test('[L10] is told to everybody when somebody comes, goes or drives', () => {
    const bench = new Bench()
    const first = bench.attach({ identity: 1, hello: { name: 'ann' } })
    first.hears()
    bench.wait(100)
    const second = bench.attach({ identity: 2, hello: { name: 'bob' } })
    const ann = { id: 'a1', role: 'driver', name: 'ann', connected: true }
    const bob = { id: 'a2', role: 'viewer', name: 'bob', connected: true }
    expect(first.hears('presence')).toEqual([
      { type: 'presence', driver: 'a1', attachments: [ann, bob] },
    ] as never)
    bench.wait(100)
    second.says({ type: 'take' })
    expect(first.hears('presence')).toMatchObject([{ driver: 'a2' }])
    bench.wait(100)
    second.cut()
    expect(first.hears('presence')).toMatchObject([
      { driver: 'a2', attachments: [{ id: 'a1' }, { id: 'a2', connected: false }] },
    ])
  })

  test('[L10] is told when a driver is forgotten for good', () => {
    const bench = new Bench({ keepSeconds: 40 })
    bench.attach({ identity: 1 }).cut()
    const viewer = bench.attach({ identity: 2, role: 'viewer' })
    bench.wait(1_000)
    viewer.hears()
    for (let step = 0; step < 5; step += 1) {
      viewer.says({ type: 'ping', id: step })
      bench.wait(10_000)
    }
    expect(viewer.hears('presence')).toMatchObject([{ driver: null, attachments: [{ id: 'a2' }] }])
  })

  test('[L10] storms are told at most every 50 ms, the newest state last', () => {
    const bench = new Bench()
    const first = bench.attach({ identity: 1 })
    first.hears()
    for (let identity = 10; identity < 40; identity += 1) {
      const other = bench.attach({ identity, role: 'viewer' })
      bench.wait(10)
      if (identity < 39) other.says({ type: 'detach' })
    }
    bench.wait(100)
    const told = first.hears('presence')
    expect(told.length).toBeLessThanOrEqual(9)
    expect(told.at(-1)).toMatchObject({ attachments: [{ id: 'a1' }, { id: 'a31' }] })
  })
})

test('[L12] a lease that is moved without end is rate limited', () => {
  const bench = new Bench()
  const first = bench.attach({ identity: 1 })
  const second = bench.attach({ identity: 2 })
  let moves = 0
  while (bench.session.attachments.byConnection(second.connectionId) !== undefined && moves < 1_000) {
    second.says({ type: 'take' })
    first.says({ type: 'give', to: second.id })
    moves += 1
  }
  expect(moves).toBe(41)
  expect(second.refusal().error).toBe('rate_limited')
})
