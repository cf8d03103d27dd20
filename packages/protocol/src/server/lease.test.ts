import { describe, expect, test } from 'bun:test'
import { Lease } from './lease.ts'
import { SessionFixture } from './server-session.fixture.ts'

describe('a lease', () => {
  test('[L1] has a new epoch for every change of holder', () => {
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
    const fixture = new SessionFixture()
    fixture.attach({ identity: 1 })
    expect(fixture.attach({ identity: 2 }).received('welcome')).toMatchObject([
      { role: 'viewer', authority: 'driver' },
    ])
  })

  test('[L3] with take in its URL gets the lease, and the first is sent where its input ended', () => {
    const fixture = new SessionFixture()
    const first = fixture.attach({ identity: 1 })
    first.sendInput('abc')
    first.received()
    const second = fixture.attach({ identity: 2, rights: { take: true } })
    expect(second.received('welcome')).toMatchObject([{ role: 'driver', epoch: 2 }])
    expect(first.received('role')).toEqual([
      { type: 'role', role: 'viewer', epoch: 2, input: { at: 3, seq: 0 } },
    ])
  })

  test('[L3] takes the lease with a message, and both are notified', () => {
    const fixture = new SessionFixture()
    const first = fixture.attach({ identity: 1 })
    const second = fixture.attach({ identity: 2 })
    second.sendMessage({ type: 'take' })
    expect(first.received('role')).toMatchObject([{ role: 'viewer', epoch: 2 }])
    expect(second.received('role')).toMatchObject([{ role: 'driver', epoch: 2 }])
    second.sendMessage({ type: 'take' })
    expect(second.received('role')).toEqual([])
  })

  test('[L6] gets the lease only after the grace period', () => {
    const fixture = new SessionFixture()
    fixture.attach({ identity: 1 }).disconnect()
    fixture.wait(29_000)
    expect(fixture.attach({ identity: 2 }).received('welcome')).toMatchObject([{ role: 'viewer' }])
    fixture.wait(2_000)
    const third = fixture.attach({ identity: 3 })
    expect(third.received('welcome')).toMatchObject([{ role: 'driver' }])
    expect(fixture.attach({ identity: 1, hello: { resuming: true } }).received('welcome')).toMatchObject([
      { role: 'viewer' },
    ])
  })

  test('[L6] that resumes within the grace period keeps driving', () => {
    const fixture = new SessionFixture()
    fixture.attach({ identity: 1 }).disconnect()
    fixture.wait(29_000)
    expect(fixture.attach({ identity: 1, hello: { resuming: true } }).received('welcome')).toMatchObject([
      { role: 'driver', epoch: 1 },
    ])
  })
})

describe('take', () => {
  test.each(['viewer', 'collaborator'] as const)(
    '[L11] by an attachment that may be %s is refused',
    (authority) => {
      const fixture = new SessionFixture()
      const driver = fixture.attach({ identity: 1 })
      const other = fixture.attach({ identity: 2, rights: { authority } })
      other.sendMessage({ type: 'take' })
      expect(other.refusal().error).toBe('forbidden')
      expect(driver.received('role')).toEqual([])
    },
  )

  test('[F4] gives a new driver its own time to show progress', () => {
    const fixture = new SessionFixture({ overflow: 'trim', limits: { logBytes: 10 } })
    fixture.attach({ identity: 1, hello: { window: 4 } })
    const viewer = fixture.attach({ identity: 2, hello: { window: 4 } })
    fixture.output('abcd')
    fixture.wait(45_000)
    viewer.sendMessage({ type: 'take' })
    fixture.wait(20_000)
    expect(viewer.attachment?.isStalled).toBe(false)
    expect(fixture.session.isPaused).toBe(true)
  })
})

describe('give', () => {
  test('[L4] gives the lease to another attachment that may drive', () => {
    const fixture = new SessionFixture()
    const first = fixture.attach({ identity: 1 })
    const second = fixture.attach({ identity: 2 })
    first.sendMessage({ type: 'give', to: second.id })
    expect(second.attachment?.role).toBe('driver')
    expect(first.attachment?.role).toBe('viewer')
  })

  test('[L4] has no effect for an attachment that is unknown, detached, may not drive or is the sender', () => {
    const fixture = new SessionFixture()
    const first = fixture.attach({ identity: 1 })
    const away = fixture.attach({ identity: 2 })
    const { id } = away
    away.disconnect()
    const viewer = fixture.attach({ identity: 3, rights: { authority: 'viewer' } })
    for (const to of ['a99', id, viewer.id, first.id]) first.sendMessage({ type: 'give', to })
    expect(first.attachment?.role).toBe('driver')
    expect(fixture.session.attachments.lease.epoch).toBe(1)
    expect(first.received('error', 'closed', 'role')).toEqual([])
  })

  test('[L4] from an attachment that has just lost the lease has no effect', () => {
    const fixture = new SessionFixture()
    const first = fixture.attach({ identity: 1 })
    const second = fixture.attach({ identity: 2 })
    const third = fixture.attach({ identity: 3 })
    second.sendMessage({ type: 'take' })
    first.sendMessage({ type: 'give', to: third.id })
    expect(second.attachment?.role).toBe('driver')
    expect(first.received('error', 'closed')).toEqual([])
  })
})

describe('ask', () => {
  test('[L5] is forwarded to the driver with the name of the sender', () => {
    const fixture = new SessionFixture()
    const driver = fixture.attach({ identity: 1 })
    const viewer = fixture.attach({ identity: 2, role: 'viewer' })
    viewer.sendMessage({ type: 'ask' })
    driver.sendMessage({ type: 'ask' })
    expect(driver.received('asked')).toEqual([{ type: 'asked', by: viewer.id }])
  })

  test('[L5] is granted without a driver, to the first sender that may drive', () => {
    const fixture = new SessionFixture()
    const driver = fixture.attach({ identity: 1 })
    const [first, second] = [fixture.attach({ identity: 2 }), fixture.attach({ identity: 3 })]
    const viewer = fixture.attach({ identity: 4, rights: { authority: 'viewer' } })
    driver.sendMessage({ type: 'detach' })
    viewer.sendMessage({ type: 'ask' })
    expect(viewer.attachment?.role).toBe('viewer')
    first.sendMessage({ type: 'ask' })
    second.sendMessage({ type: 'ask' })
    expect([first.attachment?.role, second.attachment?.role]).toEqual(['driver', 'viewer'])
    expect(first.received('asked')).toEqual([{ type: 'asked', by: second.id }])
  })

  test('[L5] is not granted while the lease is reserved for a disconnected driver', () => {
    const fixture = new SessionFixture()
    const driver = fixture.attach({ identity: 1 })
    const other = fixture.attach({ identity: 2 })
    driver.disconnect()
    other.sendMessage({ type: 'ask' })
    expect(other.attachment?.role).toBe('viewer')
  })
})

describe('detach', () => {
  test('[L7] frees the lease at once, closes normally and cannot be resumed', () => {
    const fixture = new SessionFixture()
    const first = fixture.attach({ identity: 1 })
    first.sendMessage({ type: 'detach' })
    expect(first.received('closed')).toEqual([{ type: 'closed', code: 1000, reason: '' }])
    expect(fixture.attach({ identity: 2 }).received('welcome')).toMatchObject([{ role: 'driver' }])
    expect(fixture.attach({ identity: 1, hello: { resuming: true } }).refusal().error).toBe('resume_lost')
  })
})

test('[L7] a late hello does not restore a detached attachment, however many detach', () => {
  const fixture = new SessionFixture()
  fixture.attach({ identity: 1 })
  for (let identity = 100; identity < 1_000; identity += 1) {
    fixture.attach({ identity, role: 'viewer' }).sendMessage({ type: 'detach' })
    const late = fixture.attach({ identity, hello: { resuming: false }, rights: { take: true } })
    expect(late.refusal().error).toBe('resume_lost')
  }
  expect(fixture.session.attachments.size).toBe(1)
})

describe('the limits of a role', () => {
  test('[L8] input of a viewer is refused without effect', () => {
    const fixture = new SessionFixture()
    fixture.attach({ identity: 1 })
    fixture.takeEffects()
    const viewer = fixture.attach({ identity: 2, role: 'viewer' })
    viewer.sendInput('x')
    expect(viewer.refusal()).toEqual({ error: 'role_refused', close: 4430 })
    expect(fixture.takeEffects()).toEqual([])
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
        const fixture = new SessionFixture({ mode: 'pty' })
        fixture.attach({ identity: 1 })
        const other = fixture.attach({ identity: 2, role })
        fixture.takeEffects()
        other.sendMessage(message)
        expect(other.refusal().error).toBe('role_refused')
        expect(fixture.takeEffects()).toEqual([])
      }
    },
  )

  test('[L8] a collaborator may send input', () => {
    const fixture = new SessionFixture()
    fixture.attach({ identity: 1 })
    const other = fixture.attach({ identity: 2, role: 'collaborator' })
    fixture.takeEffects()
    other.sendInput('x')
    expect(fixture.takeEffects()).toMatchObject([{ do: 'write' }])
  })
})

describe('a driver that lost the lease', () => {
  test('[L9] is not refused for input in flight, which is discarded', () => {
    const fixture = new SessionFixture()
    const first = fixture.attach({ identity: 1 })
    first.sendInput('abc')
    const second = fixture.attach({ identity: 2, rights: { take: true } })
    fixture.takeEffects()
    first.sendInput('late')
    first.sendMessage({ type: 'signal', signal: 'SIGINT', seq: 1, at: 7 })
    expect(fixture.takeEffects()).toEqual([])
    expect(first.received('error', 'closed')).toEqual([])
    first.sendMessage({ type: 'roleSeen', epoch: 2 })
    first.sendInput('more')
    expect(first.refusal().error).toBe('role_refused')
    expect(second.attachment?.role).toBe('driver')
  })

  test('[L9] and got it back writes only what it sent after seeing the change', () => {
    const fixture = new SessionFixture()
    const first = fixture.attach({ identity: 1 })
    const second = fixture.attach({ identity: 2, rights: { take: true } })
    second.sendMessage({ type: 'give', to: first.id })
    fixture.takeEffects()
    first.sendInput('from the first time')
    first.sendMessage({ type: 'roleSeen', epoch: 2 })
    first.sendMessage({ type: 'roleSeen', epoch: 3 })
    first.sendInput('new')
    expect(fixture.takeEffects()).toEqual([{ do: 'write', bytes: new TextEncoder().encode('new') }])
  })

  test('[L9] cannot confirm an epoch in advance', () => {
    const fixture = new SessionFixture()
    const first = fixture.attach({ identity: 1 })
    first.sendMessage({ type: 'roleSeen', epoch: 1_000 })
    fixture.attach({ identity: 2, rights: { take: true } })
    fixture.takeEffects()
    first.sendInput('late')
    expect(fixture.takeEffects()).toEqual([])
    expect(first.received('error', 'closed')).toEqual([])
  })
})

describe('presence', () => {
  test('[L10] is sent to every attachment when one attaches, detaches or drives', () => {
    const fixture = new SessionFixture()
    const first = fixture.attach({ identity: 1, hello: { name: 'ann' } })
    first.received()
    fixture.wait(100)
    const second = fixture.attach({ identity: 2, hello: { name: 'bob' } })
    const ann = { id: 'a1', role: 'driver', name: 'ann', connected: true }
    const bob = { id: 'a2', role: 'viewer', name: 'bob', connected: true }
    expect(first.received('presence')).toEqual([
      { type: 'presence', driver: 'a1', attachments: [ann, bob], private: null },
    ] as never)
    fixture.wait(100)
    second.sendMessage({ type: 'take' })
    expect(first.received('presence')).toMatchObject([{ driver: 'a2' }])
    fixture.wait(100)
    second.disconnect()
    expect(first.received('presence')).toMatchObject([
      { driver: 'a2', attachments: [{ id: 'a1' }, { id: 'a2', connected: false }] },
    ])
  })

  test('[L10] is sent when a driver is removed', () => {
    const fixture = new SessionFixture({ keepSeconds: 40 })
    fixture.attach({ identity: 1 }).disconnect()
    const viewer = fixture.attach({ identity: 2, role: 'viewer' })
    fixture.wait(1_000)
    viewer.received()
    for (let step = 0; step < 5; step += 1) {
      viewer.sendMessage({ type: 'ping', id: step })
      fixture.wait(10_000)
    }
    expect(viewer.received('presence')).toMatchObject([{ driver: null, attachments: [{ id: 'a2' }] }])
  })

  test('[L10] is sent at most every 50 ms, the newest state last', () => {
    const fixture = new SessionFixture()
    const first = fixture.attach({ identity: 1 })
    first.received()
    for (let identity = 10; identity < 40; identity += 1) {
      const other = fixture.attach({ identity, role: 'viewer' })
      fixture.wait(10)
      if (identity < 39) other.sendMessage({ type: 'detach' })
    }
    fixture.wait(100)
    const told = first.received('presence')
    expect(told.length).toBeLessThanOrEqual(9)
    expect(told.at(-1)).toMatchObject({ attachments: [{ id: 'a1' }, { id: 'a31' }] })
  })
})

test('[L12] frequent lease messages are rate limited', () => {
  const fixture = new SessionFixture()
  const first = fixture.attach({ identity: 1 })
  const second = fixture.attach({ identity: 2 })
  let moves = 0
  while (fixture.session.attachments.byConnection(second.connectionId) !== undefined && moves < 1_000) {
    second.sendMessage({ type: 'take' })
    first.sendMessage({ type: 'give', to: second.id })
    moves += 1
  }
  expect(moves).toBe(41)
  expect(second.refusal().error).toBe('rate_limited')
})
