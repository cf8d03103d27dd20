import { describe, expect, test } from 'bun:test'
import { Bench, type Peer } from './server-session.fixture.ts'

const WINDOW = { startBytes: 8, minBytes: 1, maxBytes: 8 }

/** Pauses and resumes among the effects since the last look. */
function flow(bench: Bench): string[] {
  return bench
    .takeEffects()
    .map((effect) => effect.do)
    .filter((name) => name === 'pause' || name === 'resume')
}

/** Writes like a program that respects its pauses, up to a number of bytes. */
function writeUpTo(bench: Bench, bytes: number): number {
  let written = 0
  while (written < bytes && !bench.session.isPaused) {
    bench.output('xx')
    written += 2
  }
  return written
}

describe('the driver', () => {
  test('[F1] pauses the process with a window of unread output and lets it go on at an eighth of a small one', () => {
    const bench = new Bench({ limits: { window: WINDOW } })
    const driver = bench.attach()
    bench.takeEffects()
    bench.output('abcdefg')
    expect(flow(bench)).toEqual([])
    bench.output('h')
    expect(flow(bench)).toEqual(['pause'])
    driver.acks(6)
    expect(flow(bench)).toEqual([])
    driver.acks(7)
    expect(flow(bench)).toEqual(['resume'])
  })

  test('[F1] lets the process go on at half of a large window', () => {
    const size = 256 * 1024
    const bench = new Bench({ limits: { window: { startBytes: size, minBytes: size, maxBytes: size } } })
    const driver = bench.attach()
    bench.takeEffects()
    bench.output('x'.repeat(size))
    expect(flow(bench)).toEqual(['pause'])
    driver.acks(size / 2 - 1)
    expect(flow(bench)).toEqual([])
    driver.acks(size / 2)
    expect(flow(bench)).toEqual(['resume'])
  })

  test('[F1] pauses the process while 64 KiB wait for its connection', () => {
    const size = 1024 * 1024
    const bench = new Bench({ limits: { window: { startBytes: size, minBytes: size, maxBytes: size } } })
    const driver = bench.attach()
    bench.takeEffects()
    driver.block()
    bench.output('x'.repeat(64 * 1024 - 1))
    expect(flow(bench)).toEqual([])
    bench.output('x')
    expect(flow(bench)).toEqual(['pause'])
    driver.drain()
    expect(flow(bench)).toEqual(['resume'])
  })

  test('[F1] is alone in that: viewers and collaborators never pause it', () => {
    const bench = new Bench({ limits: { window: WINDOW } })
    const driver = bench.attach({ identity: 1 })
    bench.attach({ identity: 2, role: 'viewer' })
    bench.attach({ identity: 3, role: 'collaborator' })
    bench.takeEffects()
    for (let offset = 0; offset < 100; offset += 4) {
      bench.output('abcd')
      driver.acks(offset + 4)
    }
    expect(flow(bench)).toEqual([])
  })

  test('[F9] has nothing trimmed that it has not consumed', () => {
    const bench = new Bench({ limits: { window: WINDOW, logBytes: 2 } })
    const driver = bench.attach()
    bench.output('abcdefgh')
    expect(bench.session.log.start).toBe(0)
    driver.acks(5)
    expect(bench.session.log.start).toBe(5)
  })

  test('[F5] of a blocking session can read nothing for an hour and misses nothing', () => {
    const bench = new Bench({ limits: { window: WINDOW, logBytes: 4, silenceMs: 1e9 } })
    const driver = bench.attach()
    expect(writeUpTo(bench, 100)).toBe(8)
    bench.wait(3_600_000)
    expect(bench.session.isPaused).toBe(true)
    expect(driver.attachment?.isStalled).toBe(false)
    expect(driver.hearsOutput()).toBe('xxxxxxxx')
    driver.acks(8)
    expect(driver.hears('gap')).toEqual([])
  })
})

describe('a driver of a trimming session that reads nothing', () => {
  const open = (): { bench: Bench; driver: Peer } => {
    const bench = new Bench({ overflow: 'trim', limits: { window: WINDOW, logBytes: 16, silenceMs: 1e9 } })
    const driver = bench.attach({ identity: 1 })
    return { bench, driver }
  }

  test('[F4] holds the program for 30 s and then no longer', () => {
    const { bench, driver } = open()
    writeUpTo(bench, 100)
    bench.wait(29_999)
    expect(bench.session.isPaused).toBe(true)
    bench.wait(1)
    expect(bench.session.isPaused).toBe(false)
    expect(writeUpTo(bench, 100)).toBe(100)
    driver.hears()
    driver.acks(8)
    expect(driver.hears('gap')).toEqual([{ type: 'gap', from: 8, to: 92 }])
    expect(bench.session.isPaused).toBe(true)
  })

  test('[F4] has its time counted from the first byte it has not got', () => {
    const { bench, driver } = open()
    bench.output('ab')
    driver.acks(2)
    bench.wait(60_000)
    driver.block()
    writeUpTo(bench, 100)
    bench.wait(29_000)
    expect(bench.session.isPaused).toBe(true)
    bench.wait(1_001)
    expect(bench.session.isPaused).toBe(false)
  })

  test('[F4] is not stalled while it makes any progress', () => {
    const { bench, driver } = open()
    writeUpTo(bench, 100)
    for (let offset = 1; offset <= 8; offset += 1) {
      bench.wait(25_000)
      driver.acks(offset)
    }
    expect(driver.attachment?.isStalled).toBe(false)
  })

  test('[F8] does not block the program again by losing its connection', () => {
    const { bench, driver } = open()
    writeUpTo(bench, 100)
    bench.wait(30_000)
    writeUpTo(bench, 100)
    driver.cut()
    expect(bench.session.isPaused).toBe(false)
    expect(writeUpTo(bench, 100)).toBe(100)
  })
})

describe('while nobody drives', () => {
  const limits = { window: WINDOW, logBytes: 16 }

  test.each(['block', 'trim'] as const)(
    '[F6] a %s session blocks with a full log for the grace',
    (overflow) => {
      const bench = new Bench({ overflow, limits })
      const driver = bench.attach({ identity: 1 })
      bench.output('abcd')
      driver.acks(2)
      driver.cut()
      expect(writeUpTo(bench, 100)).toBe(14)
      bench.wait(29_000)
      expect(bench.session.isPaused).toBe(true)
      const back = bench.attach({ identity: 1, hello: { resuming: true, received: 3 } })
      expect(back.hears('gap', 'stdout')).toEqual([
        { type: 'stdout', text: 'dx' },
        { type: 'stdout', text: 'xx' },
        { type: 'stdout', text: 'xx' },
        { type: 'stdout', text: 'x' },
      ])
    },
  )

  test('[F7] a trimming session runs on and keeps the newest bytes', () => {
    const bench = new Bench({ overflow: 'trim', keepSeconds: 3600, limits })
    bench.attach({ identity: 1 }).cut()
    writeUpTo(bench, 100)
    bench.wait(30_000)
    expect(bench.session.isPaused).toBe(false)
    writeUpTo(bench, 200)
    expect(bench.session.log.end - bench.session.log.start).toBe(16)
    const back = bench.attach({ identity: 1, hello: { resuming: true } })
    expect(back.hears('gap')).toMatchObject([{ from: 0, to: bench.session.log.start }])
  })

  test('[F7] a trimming session that never had a driver waits for none', () => {
    const bench = new Bench({ overflow: 'trim', keepSeconds: 3600, limits })
    bench.run(bench.session.start({ env: {}, cols: 80, rows: 24 }, 0))
    expect(writeUpTo(bench, 100)).toBe(100)
    expect(bench.session.log.end - bench.session.log.start).toBe(16)
  })

  test('[F7] a session that is ending with nobody there does not hold its program', () => {
    const bench = new Bench({ overflow: 'block', keepSeconds: 1, limits })
    bench.attach({ identity: 1 }).cut()
    writeUpTo(bench, 100)
    expect(bench.session.isPaused).toBe(true)
    bench.wait(1_000)
    expect(bench.session.isPaused).toBe(false)
  })
})

describe('a plain reader that takes nothing', () => {
  test.each(['block', 'trim'] as const)('[P5] pauses a %s session for as long as it lasts', (overflow) => {
    const bench = new Bench({ overflow, keepSeconds: 0, limits: { window: WINDOW, logBytes: 4 } })
    const plain = bench.connect({ dialect: 'plain' })
    bench.output('ab')
    plain.block()
    const written = writeUpTo(bench, 100)
    expect(written).toBe(8)
    bench.wait(3_600_000)
    expect(bench.session.isPaused).toBe(true)
    plain.drain()
    expect(plain.hearsOutput()).toBe(`ab${'x'.repeat(8)}`)
    expect(bench.session.isPaused).toBe(false)
  })
})
