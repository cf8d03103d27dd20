import { describe, expect, test } from 'bun:test'
import { PLAIN_INPUT_BYTES, SILENCE_MS, STALL_MS } from '../limits.ts'
import { Bench, type Peer } from './server-session.fixture.ts'

const RELAYED = { isRelayed: true } as const

/** A terminal with one client behind a translator, which drives it. */
function terminal(): { bench: Bench; driver: Peer } {
  const bench = new Bench({ mode: 'pty', overflow: 'trim', limits: { logBytes: 1000 } })
  const driver = bench.attach({ rights: RELAYED })
  return { bench, driver }
}

describe('an attachment behind a translator', () => {
  test('begins at the end of the log, without a screen', () => {
    const { bench, driver } = terminal()
    bench.output('before')
    expect(driver.hearsOutput()).toBe('before')
    bench.takeEffects()
    const other = bench.attach({ rights: RELAYED })
    expect(other.hears('welcome')).toMatchObject([{ output: 6, role: 'collaborator' }])
    bench.output('after')
    expect(other.hearsOutput()).toBe('after')
    expect(bench.takeEffects()).toEqual([])
  })

  test('types along while another one drives, and while it was taken over', () => {
    const { bench, driver } = terminal()
    const other = bench.attach({ rights: RELAYED })
    bench.takeEffects()
    other.sends('a')
    driver.sends('b')
    other.says({ type: 'take' })
    driver.says({ type: 'roleSeen', epoch: bench.session.attachments.lease.epoch })
    driver.sends('c')
    expect(bench.takeEffects().map((effect) => effect.do)).toEqual(['write', 'write', 'write'])
    expect(driver.attachment?.role).toBe('collaborator')
    expect(other.attachment?.role).toBe('driver')
  })

  test('becomes no more than its connection may be', () => {
    const { bench } = terminal()
    const viewer = bench.attach({ rights: { ...RELAYED, authority: 'viewer' } })
    expect(viewer.hears('welcome')).toMatchObject([{ role: 'viewer' }])
    viewer.sends('x')
    expect(viewer.refusal().error).toBe('role_refused')
  })

  test('is held back by its connection alone, and holds the program back with it', () => {
    const { bench, driver } = terminal()
    driver.block()
    for (let times = 0; times < 40; times += 1) bench.output('x'.repeat(4096))
    expect(driver.hearsOutput()).toBe('')
    expect(bench.session.isPaused).toBe(true)
    driver.drain()
    while (bench.session.isPaused || driver.attachment?.sent !== bench.session.log.end)
      bench.run(bench.session.turn((bench.nowMs += 1)))
    expect(driver.hearsOutput()).toHaveLength(40 * 4096)
  })

  test('that takes nothing for long gets a screen instead of what it missed', () => {
    const { bench, driver } = terminal()
    driver.block()
    bench.output('x'.repeat(200_000))
    bench.wait(STALL_MS)
    expect(bench.session.isPaused).toBe(false)
    bench.output('y'.repeat(2_000))
    driver.drain()
    expect(bench.takeEffects()).toContainEqual({ do: 'snapshot', attachment: driver.id })
    bench.render(driver.id)
    expect(driver.hears('screen')).toHaveLength(1)
    bench.output('z')
    expect(driver.hearsOutput()).toBe('z')
    expect(driver.attachment?.isStalled).toBe(false)
  })

  test('may be silent, and send more than a window at once, but not without end', () => {
    const { bench, driver } = terminal()
    bench.wait(SILENCE_MS * 3)
    expect(driver.hears('closed')).toEqual([])
    driver.sends('x'.repeat(1024 * 1024))
    expect(driver.hears('closed')).toEqual([])
    for (let left = PLAIN_INPUT_BYTES; left > 0; left -= 1024 * 1024) driver.sends('x'.repeat(1024 * 1024))
    expect(driver.refusal().error).toBe('input_overflow')
  })
})
