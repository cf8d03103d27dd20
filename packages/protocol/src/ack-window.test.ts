import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { AckWindow, DEFAULT_WINDOW } from './ack-window.ts'
import { MAX_WINDOW_BYTES, MIN_WINDOW_BYTES, START_WINDOW_BYTES } from './limits.ts'
import { floodNetwork } from './slow-network.fixture.ts'

describe('a flooded path', () => {
  test.each([
    [100_000, 0.2],
    [50_000, 20],
    [10_000, 100],
  ])(
    '[W3] of %d bytes a millisecond and %d ms grows the window until it is used',
    (bytesPerMs, roundTripMs) => {
      const report = floodNetwork({ bytesPerMs, roundTripMs, forMs: 20_000 })
      expect(report.usage).toBeGreaterThan(0.9)
      expect(report.largestWindowBytes).toBe(MAX_WINDOW_BYTES)
    },
  )

  test.each([2, 50])('[W3] of 1 MB/s and %d ms queues about a tenth of a second', (roundTripMs) => {
    const report = floodNetwork({ bytesPerMs: 1_000, roundTripMs, forMs: 20_000 })
    expect(report.meanQueueMs).toBeLessThan(110)
    expect(report.maxQueueMs).toBeLessThan(125)
    expect(report.usage).toBeGreaterThan(0.95)
  })

  test('[W3] of 100 KB/s shrinks the window', () => {
    const report = floodNetwork({ bytesPerMs: 100, roundTripMs: 20, forMs: 20_000 })
    expect(report.windowBytes).toBeLessThan(START_WINDOW_BYTES / 2)
    expect(report.meanQueueMs).toBeLessThan(125)
    expect(report.usage).toBeGreaterThan(0.95)
  })

  test('[W3] of 1 KB/s never shrinks it below the minimum', () => {
    const report = floodNetwork({ bytesPerMs: 1, roundTripMs: 100, forMs: 600_000 })
    expect(report.smallestWindowBytes).toBe(MIN_WINDOW_BYTES)
    expect(report.usage).toBeGreaterThan(0.95)
  })

  test.each([
    [1_000, 2],
    [1_000, 50],
    [100, 50],
  ])(
    '[W4] of %d bytes a millisecond and %d ms does not queue more and more over ten minutes',
    (bytesPerMs, roundTripMs) => {
      const report = floodNetwork({ bytesPerMs, roundTripMs, forMs: 600_000 })
      expect(report.meanQueueMs).toBeLessThan(125)
      expect(report.maxQueueMs).toBeLessThan(200)
      expect(report.usage).toBeGreaterThan(0.95)
    },
  )
})

describe('a window', () => {
  const full = (window: AckWindow, from: number, nowMs: number): number => {
    window.sent(from + window.sizeBytes, nowMs)
    return from + window.sizeBytes
  }

  test('[W3] starts at 64 KiB, or at the size the client requests', () => {
    expect(new AckWindow(DEFAULT_WINDOW).sizeBytes).toBe(START_WINDOW_BYTES)
    expect(new AckWindow(DEFAULT_WINDOW, 1_000).sizeBytes).toBe(1_000)
    expect(new AckWindow(DEFAULT_WINDOW, 0).sizeBytes).toBe(1)
  })

  test('[W3] doubles in a round trip without queueing, up to the maximum', () => {
    const window = new AckWindow(DEFAULT_WINDOW)
    let sent = 0
    const sizes: number[] = []
    for (let trip = 0; trip < 6; trip += 1) {
      const before = window.sizeBytes
      sent = full(window, sent, trip * 10)
      window.acked(sent, before, trip * 10 + 10, true)
      sizes.push(window.sizeBytes / START_WINDOW_BYTES)
    }
    expect(sizes).toEqual([2, 4, 8, 16, 16, 16])
  })

  test('[W3] does not grow when it was not full', () => {
    const window = new AckWindow(DEFAULT_WINDOW)
    window.sent(1_000, 0)
    window.acked(1_000, 1_000, 1, false)
    expect(window.sizeBytes).toBe(START_WINDOW_BYTES)
  })

  test('[W3] halves once per window in flight, not once per ack', () => {
    const window = new AckWindow(DEFAULT_WINDOW)
    window.sent(1_000, 0)
    window.acked(1_000, 1_000, 1, false)
    for (let frame = 1; frame <= 10; frame += 1) window.sent(1_000 + frame * 1_000, 10)
    for (let frame = 1; frame <= 10; frame += 1) window.acked(1_000 + frame * 1_000, 1_000, 500 + frame, true)
    expect(window.sizeBytes).toBe(START_WINDOW_BYTES / 2)
  })

  test('[W4] treats a delay that the minimum window does not shorten as the round-trip time, and grows again', () => {
    const window = new AckWindow(DEFAULT_WINDOW)
    let [sent, nowMs] = [0, 0]
    const sizes: number[] = []
    // A page that renders for 150 ms at a time acknowledges no sooner, however little it receives.
    for (const delayMs of [5, ...Array<number>(40).fill(150)]) {
      const before = window.sizeBytes
      sent = full(window, sent, nowMs)
      nowMs += delayMs
      window.acked(sent, before, nowMs, true)
      sizes.push(window.sizeBytes)
    }
    expect(Math.min(...sizes)).toBe(MIN_WINDOW_BYTES)
    expect(sizes.at(-1)).toBe(MAX_WINDOW_BYTES)
    expect(nowMs).toBeLessThan(30_000)
  })

  test('[W1] never exceeds the size the client requests, even after it shrinks', () => {
    const window = new AckWindow({ startBytes: 100, minBytes: 50, maxBytes: 1_000 }, 10)
    let sent = 0
    for (let trip = 0; trip < 20; trip += 1) {
      sent = full(window, sent, trip * 1_000)
      window.acked(sent, 10, trip * 1_000 + (trip % 2 === 0 ? 1 : 900), true)
      expect(window.sizeBytes).toBeLessThanOrEqual(10)
    }
  })

  test('[W3] counts a gap as at most one window', () => {
    const window = new AckWindow({ ...DEFAULT_WINDOW, startBytes: 4_096 })
    window.sent(4_096, 0)
    window.acked(4_096, 50_000_000, 1, true)
    expect(window.sizeBytes).toBe(8_192)
  })

  test('[W3] restarts after a disconnect, limited by its start size and the new request', () => {
    const window = new AckWindow(DEFAULT_WINDOW)
    let sent = 0
    for (let trip = 0; trip < 5; trip += 1) {
      const before = window.sizeBytes
      sent = full(window, sent, trip)
      window.acked(sent, before, trip + 1, true)
    }
    window.restart(MAX_WINDOW_BYTES)
    expect(window.sizeBytes).toBe(START_WINDOW_BYTES)
    window.restart(77)
    expect(window.sizeBytes).toBe(77)
  })

  test('[W3] stays within its bounds for any order of sends and acknowledgements', () => {
    const step = fc.record({
      sends: fc.nat(100_000),
      acks: fc.double({ min: 0, max: 1, noNaN: true }),
      ms: fc.nat(40_000),
      limited: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const window = new AckWindow(DEFAULT_WINDOW)
        let [sent, acked, nowMs] = [0, 0, 0]
        for (const { sends, acks, ms, limited } of steps) {
          sent += sends
          window.sent(sent, nowMs)
          nowMs += ms
          const offset = acked + Math.floor((sent - acked) * acks)
          window.acked(offset, offset - acked, nowMs, limited)
          acked = offset
          expect(window.sizeBytes).toBeGreaterThanOrEqual(MIN_WINDOW_BYTES)
          expect(window.sizeBytes).toBeLessThanOrEqual(MAX_WINDOW_BYTES)
        }
      }),
    )
  })

  test('[W3] tracks a bounded number of frames in flight', () => {
    const window = new AckWindow(DEFAULT_WINDOW)
    for (let end = 1; end <= 1_000_000; end += 1) window.sent(end, end)
    window.acked(1_000_000, 1_000_000, 1_000_001, true)
    expect(window.sizeBytes).toBe(2 * START_WINDOW_BYTES)
  })
})
