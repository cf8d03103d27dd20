import { describe, expect, test } from 'bun:test'
import { SessionFixture, type Peer } from './server-session.fixture.ts'

const WINDOW = { startBytes: 8, minBytes: 1, maxBytes: 8 }

/** Pauses and resumes among the effects since the last look. */
function flow(fixture: SessionFixture): string[] {
  return fixture
    .takeEffects()
    .map((effect) => effect.do)
    .filter((name) => name === 'pause' || name === 'resume')
}

/** Writes like a program that respects its pauses, up to a number of bytes. */
function writeUpTo(fixture: SessionFixture, bytes: number): number {
  let written = 0
  while (written < bytes && !fixture.session.isPaused) {
    fixture.output('xx')
    written += 2
  }
  return written
}

describe('the driver', () => {
  test('[F1] pauses the process at a window of unread output and resumes it at an eighth of a small window', () => {
    const fixture = new SessionFixture({ limits: { window: WINDOW } })
    const driver = fixture.attach()
    fixture.takeEffects()
    fixture.output('abcdefg')
    expect(flow(fixture)).toEqual([])
    fixture.output('h')
    expect(flow(fixture)).toEqual(['pause'])
    driver.ack(6)
    expect(flow(fixture)).toEqual([])
    driver.ack(7)
    expect(flow(fixture)).toEqual(['resume'])
  })

  test('[F1] resumes the process at half of a large window', () => {
    const size = 256 * 1024
    const fixture = new SessionFixture({
      limits: { window: { startBytes: size, minBytes: size, maxBytes: size } },
    })
    const driver = fixture.attach()
    fixture.takeEffects()
    fixture.output('x'.repeat(size))
    expect(flow(fixture)).toEqual(['pause'])
    driver.ack(size / 2 - 1)
    expect(flow(fixture)).toEqual([])
    driver.ack(size / 2)
    expect(flow(fixture)).toEqual(['resume'])
  })

  test('[F1] pauses the process while 64 KiB wait for its connection', () => {
    const size = 1024 * 1024
    const fixture = new SessionFixture({
      limits: { window: { startBytes: size, minBytes: size, maxBytes: size } },
    })
    const driver = fixture.attach()
    fixture.takeEffects()
    driver.block()
    fixture.output('x'.repeat(64 * 1024 - 1))
    expect(flow(fixture)).toEqual([])
    fixture.output('x')
    expect(flow(fixture)).toEqual(['pause'])
    driver.drain()
    expect(flow(fixture)).toEqual(['resume'])
  })

  test('[F1] alone pauses the process: viewers and collaborators never do', () => {
    const fixture = new SessionFixture({ limits: { window: WINDOW } })
    const driver = fixture.attach({ identity: 1 })
    fixture.attach({ identity: 2, role: 'viewer' })
    fixture.attach({ identity: 3, role: 'collaborator' })
    fixture.takeEffects()
    for (let offset = 0; offset < 100; offset += 4) {
      fixture.output('abcd')
      driver.ack(offset + 4)
    }
    expect(flow(fixture)).toEqual([])
  })

  test('[F9] keeps output from being trimmed until it is consumed', () => {
    const fixture = new SessionFixture({ limits: { window: WINDOW, logBytes: 2 } })
    const driver = fixture.attach()
    fixture.output('abcdefgh')
    expect(fixture.session.log.start).toBe(0)
    driver.ack(5)
    expect(fixture.session.log.start).toBe(5)
  })

  test('[F5] of a blocking session loses nothing when it does not read for an hour', () => {
    const fixture = new SessionFixture({ limits: { window: WINDOW, logBytes: 4, silenceMs: 1e9 } })
    const driver = fixture.attach()
    expect(writeUpTo(fixture, 100)).toBe(8)
    fixture.wait(3_600_000)
    expect(fixture.session.isPaused).toBe(true)
    expect(driver.attachment?.isStalled).toBe(false)
    expect(driver.receivedOutput()).toBe('xxxxxxxx')
    driver.ack(8)
    expect(driver.received('gap')).toEqual([])
  })
})

describe('a driver of a trimming session that does not read', () => {
  const open = (): { fixture: SessionFixture; driver: Peer } => {
    const fixture = new SessionFixture({
      overflow: 'trim',
      limits: { window: WINDOW, logBytes: 16, silenceMs: 1e9 },
    })
    const driver = fixture.attach({ identity: 1 })
    return { fixture, driver }
  }

  test('[F4] pauses the process for 30 s at most', () => {
    const { fixture, driver } = open()
    writeUpTo(fixture, 100)
    fixture.wait(29_999)
    expect(fixture.session.isPaused).toBe(true)
    fixture.wait(1)
    expect(fixture.session.isPaused).toBe(false)
    expect(writeUpTo(fixture, 100)).toBe(100)
    driver.received()
    driver.ack(8)
    expect(driver.received('gap')).toEqual([{ type: 'gap', from: 8, to: 92 }])
    expect(fixture.session.isPaused).toBe(true)
  })

  test('[F4] is timed from the first unacknowledged byte', () => {
    const { fixture, driver } = open()
    fixture.output('ab')
    driver.ack(2)
    fixture.wait(60_000)
    driver.block()
    writeUpTo(fixture, 100)
    fixture.wait(29_000)
    expect(fixture.session.isPaused).toBe(true)
    fixture.wait(1_001)
    expect(fixture.session.isPaused).toBe(false)
  })

  test('[F4] is not stalled while it makes any progress', () => {
    const { fixture, driver } = open()
    writeUpTo(fixture, 100)
    for (let offset = 1; offset <= 8; offset += 1) {
      fixture.wait(25_000)
      driver.ack(offset)
    }
    expect(driver.attachment?.isStalled).toBe(false)
  })

  test('[F8] does not pause the process again by disconnecting', () => {
    const { fixture, driver } = open()
    writeUpTo(fixture, 100)
    fixture.wait(30_000)
    writeUpTo(fixture, 100)
    driver.disconnect()
    expect(fixture.session.isPaused).toBe(false)
    expect(writeUpTo(fixture, 100)).toBe(100)
  })
})

describe('without a driver', () => {
  const limits = { window: WINDOW, logBytes: 16 }

  test.each(['block', 'trim'] as const)(
    '[F6] a %s session blocks with a full log for the grace',
    (overflow) => {
      const fixture = new SessionFixture({ overflow, limits })
      const driver = fixture.attach({ identity: 1 })
      fixture.output('abcd')
      driver.ack(2)
      driver.disconnect()
      expect(writeUpTo(fixture, 100)).toBe(14)
      fixture.wait(29_000)
      expect(fixture.session.isPaused).toBe(true)
      const back = fixture.attach({ identity: 1, hello: { resuming: true, received: 3 } })
      expect(back.received('gap', 'stdout')).toEqual([
        { type: 'stdout', text: 'dx' },
        { type: 'stdout', text: 'xx' },
        { type: 'stdout', text: 'xx' },
        { type: 'stdout', text: 'x' },
      ])
    },
  )

  test('[F7] a trimming session keeps the newest bytes', () => {
    const fixture = new SessionFixture({ overflow: 'trim', keepSeconds: 3600, limits })
    fixture.attach({ identity: 1 }).disconnect()
    writeUpTo(fixture, 100)
    fixture.wait(30_000)
    expect(fixture.session.isPaused).toBe(false)
    writeUpTo(fixture, 200)
    expect(fixture.session.log.end - fixture.session.log.start).toBe(16)
    const back = fixture.attach({ identity: 1, hello: { resuming: true } })
    expect(back.received('gap')).toMatchObject([{ from: 0, to: fixture.session.log.start }])
  })

  test('[F7] a trimming session without an earlier driver does not pause', () => {
    const fixture = new SessionFixture({ overflow: 'trim', keepSeconds: 3600, limits })
    fixture.run(fixture.session.start({ env: {}, cols: 80, rows: 24 }, 0))
    expect(writeUpTo(fixture, 100)).toBe(100)
    expect(fixture.session.log.end - fixture.session.log.start).toBe(16)
  })

  test('[F7] an ending session without attachments does not pause its process', () => {
    const fixture = new SessionFixture({ overflow: 'block', keepSeconds: 1, limits })
    fixture.attach({ identity: 1 }).disconnect()
    writeUpTo(fixture, 100)
    expect(fixture.session.isPaused).toBe(true)
    fixture.wait(1_000)
    expect(fixture.session.isPaused).toBe(false)
  })
})

describe('a plain client that does not read', () => {
  test.each(['block', 'trim'] as const)('[P5] pauses a %s session for as long as it lasts', (overflow) => {
    const fixture = new SessionFixture({ overflow, keepSeconds: 0, limits: { window: WINDOW, logBytes: 4 } })
    const plain = fixture.connect({ dialect: 'plain' })
    fixture.output('ab')
    plain.block()
    const written = writeUpTo(fixture, 100)
    expect(written).toBe(8)
    fixture.wait(3_600_000)
    expect(fixture.session.isPaused).toBe(true)
    plain.drain()
    expect(plain.receivedOutput()).toBe(`ab${'x'.repeat(8)}`)
    expect(fixture.session.isPaused).toBe(false)
  })
})
