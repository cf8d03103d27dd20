import { describe, expect, test } from 'bun:test'
import { PLAIN_INPUT_BYTES, SILENCE_MS, STALL_MS } from '../limits.ts'
import { SessionFixture, type Peer } from './server-session.fixture.ts'

/** Rights of a client without windows, roles or heartbeats. */
const UNWINDOWED = {
  acknowledgement: 'connection',
  outputFrom: 'end',
  roleWithoutLease: 'collaborator',
  hasSilenceTimeout: false,
} as const

/** A terminal driven by one such client. */
function terminal(): { fixture: SessionFixture; driver: Peer } {
  const fixture = new SessionFixture({ mode: 'pty', overflow: 'trim', limits: { logBytes: 1000 } })
  const driver = fixture.attach({ rights: UNWINDOWED })
  return { fixture, driver }
}

describe('an attachment whose connection acknowledges output', () => {
  test('starts at the end of the log without a snapshot, with outputFrom "end"', () => {
    const { fixture, driver } = terminal()
    fixture.output('before')
    expect(driver.receivedOutput()).toBe('before')
    fixture.takeEffects()
    const other = fixture.attach({ rights: UNWINDOWED })
    expect(other.received('welcome')).toMatchObject([{ output: 6, role: 'collaborator' }])
    fixture.output('after')
    expect(other.receivedOutput()).toBe('after')
    expect(fixture.takeEffects()).toEqual([])
  })

  test('accepts input without the lease, with roleWithoutLease "collaborator"', () => {
    const { fixture, driver } = terminal()
    const other = fixture.attach({ rights: UNWINDOWED })
    fixture.takeEffects()
    other.sendInput('a')
    driver.sendInput('b')
    other.sendMessage({ type: 'take' })
    driver.sendMessage({ type: 'roleSeen', epoch: fixture.session.attachments.lease.epoch })
    driver.sendInput('c')
    expect(fixture.takeEffects().map((effect) => effect.do)).toEqual(['write', 'write', 'write'])
    expect(driver.attachment?.role).toBe('collaborator')
    expect(other.attachment?.role).toBe('driver')
  })

  test('gets no higher role than its connection allows', () => {
    const { fixture } = terminal()
    const viewer = fixture.attach({ rights: { ...UNWINDOWED, authority: 'viewer' } })
    expect(viewer.received('welcome')).toMatchObject([{ role: 'viewer' }])
    viewer.sendInput('x')
    expect(viewer.refusal().error).toBe('role_refused')
  })

  test('pauses the process while its connection is blocked', () => {
    const { fixture, driver } = terminal()
    driver.block()
    for (let times = 0; times < 40; times += 1) fixture.output('x'.repeat(4096))
    expect(driver.receivedOutput()).toBe('')
    expect(fixture.session.isPaused).toBe(true)
    driver.drain()
    while (fixture.session.isPaused || driver.attachment?.sent !== fixture.session.log.end)
      fixture.run(fixture.session.turn((fixture.nowMs += 1)))
    expect(driver.receivedOutput()).toHaveLength(40 * 4096)
  })

  test('gets a snapshot in place of trimmed output after a stall', () => {
    const { fixture, driver } = terminal()
    driver.block()
    fixture.output('x'.repeat(200_000))
    fixture.wait(STALL_MS)
    expect(fixture.session.isPaused).toBe(false)
    fixture.output('y'.repeat(2_000))
    driver.drain()
    expect(fixture.takeEffects()).toContainEqual({ do: 'snapshot', attachment: driver.id })
    fixture.render(driver.id)
    expect(driver.received('screen')).toHaveLength(1)
    fixture.output('z')
    expect(driver.receivedOutput()).toBe('z')
    expect(driver.attachment?.isStalled).toBe(false)
  })

  test('[Y5] gets the screen in place of a backlog and pauses nothing, with skipsBacklog', () => {
    const fixture = new SessionFixture({ mode: 'pty', overflow: 'trim', limits: { logBytes: 200_000 } })
    const driver = fixture.attach({ rights: { ...UNWINDOWED, skipsBacklog: true } })
    driver.block()
    for (let times = 0; times < 100; times += 1) fixture.output('x'.repeat(4096))
    expect(fixture.session.isPaused).toBe(false)
    driver.drain()
    expect(fixture.takeEffects()).toContainEqual({ do: 'snapshot', attachment: driver.id })
    fixture.render(driver.id)
    fixture.output('y')
    expect(driver.receivedOutput()).toBe('y')
  })

  test('[Y5] gets another screen when the output after the first was trimmed before it was sent', () => {
    const fixture = new SessionFixture({ mode: 'pty', overflow: 'trim', limits: { logBytes: 200_000 } })
    const driver = fixture.attach({ rights: { ...UNWINDOWED, skipsBacklog: true } })
    driver.block()
    fixture.output('x'.repeat(400_000))
    driver.drain()
    const screen = { at: fixture.session.log.end, cols: 80, rows: 24, data: new Uint8Array(), exact: true }
    fixture.output('y'.repeat(400_000))
    fixture.takeEffects()
    fixture.run(fixture.session.snapshotReady(driver.id, screen, fixture.nowMs))
    expect(fixture.takeEffects()).toContainEqual({ do: 'snapshot', attachment: driver.id })
  })

  test('[Y5] gets a short backlog as it is, with skipsBacklog', () => {
    const fixture = new SessionFixture({ mode: 'pty', overflow: 'trim' })
    const driver = fixture.attach({ rights: { ...UNWINDOWED, skipsBacklog: true } })
    driver.block()
    fixture.output('short')
    driver.drain()
    expect(driver.receivedOutput()).toBe('short')
  })

  test('pauses a process whose output must not be trimmed, with skipsBacklog', () => {
    const fixture = new SessionFixture({ mode: 'pty', overflow: 'block' })
    const driver = fixture.attach({ rights: { ...UNWINDOWED, skipsBacklog: true } })
    driver.block()
    for (let times = 0; times < 100; times += 1) fixture.output('x'.repeat(4096))
    expect(fixture.session.isPaused).toBe(true)
  })

  test('has no silence timeout, and its input is bounded without a window', () => {
    const { fixture, driver } = terminal()
    fixture.wait(SILENCE_MS * 3)
    expect(driver.received('closed')).toEqual([])
    driver.sendInput('x'.repeat(1024 * 1024))
    expect(driver.received('closed')).toEqual([])
    for (let left = PLAIN_INPUT_BYTES; left > 0; left -= 1024 * 1024)
      driver.sendInput('x'.repeat(1024 * 1024))
    expect(driver.refusal().error).toBe('input_overflow')
  })
})
