import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { OutputStream } from './data-frame.ts'
import { MAX_DATA_BYTES } from './limits.ts'
import { type LogSlice, OutputLog } from './output-log.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const shown = (slice: LogSlice | undefined): string | undefined =>
  slice === undefined ? undefined : `${slice.stream}:${new TextDecoder().decode(slice.bytes)}`

describe('OutputLog', () => {
  test('[R3] counts the payload of both streams from 0', () => {
    const log = new OutputLog(100)
    log.append('stdout', bytes('ab'))
    log.append('stderr', bytes('cde'))
    expect([log.start, log.end]).toEqual([0, 5])
  })

  test('[R3] returns runs of one stream', () => {
    const log = new OutputLog(100)
    log.append('stdout', bytes('ab'))
    log.append('stdout', bytes('c'))
    log.append('stderr', bytes('de'))
    expect(shown(log.read(0, 100))).toBe('stdout:abc')
    expect(shown(log.read(1, 1))).toBe('stdout:b')
    expect(shown(log.read(3, 100))).toBe('stderr:de')
    expect(shown(log.read(4, 100))).toBe('stderr:e')
    expect(log.read(5, 100)).toBeUndefined()
    expect(log.read(0, 0)).toBeUndefined()
  })

  test('[F9] trims the oldest bytes to its limit, except retained ones', () => {
    const log = new OutputLog(4)
    log.append('stdout', bytes('abcdefgh'))
    log.trim(2)
    expect(log.start).toBe(2)
    log.trim(100)
    expect(log.start).toBe(4)
    expect(log.read(3, 10)).toBeUndefined()
    expect(shown(log.read(4, 10))).toBe('stdout:efgh')
    log.trim(0)
    expect(log.start).toBe(4)
  })

  test('[R3] never changes bytes it has returned', () => {
    const log = new OutputLog(1_000_000)
    log.append('stdout', bytes('ab'))
    const slices = [log.read(0, 10), log.read(1, 10)]
    for (let times = 0; times < 2_000; times += 1)
      log.append(times % 2 === 0 ? 'stdout' : 'stderr', bytes('xyz'))
    expect(slices.map(shown)).toEqual(['stdout:ab', 'stdout:b'])
  })

  test('[R3] splits output larger than a frame', () => {
    const log = new OutputLog(1_000_000)
    log.append('stdout', new Uint8Array(200_000))
    const ends: number[] = []
    for (let at = 0; at < log.end; at = ends.at(-1) ?? log.end)
      ends.push(log.read(at, 1_000_000)?.end ?? log.end)
    expect(ends).toEqual([MAX_DATA_BYTES, 2 * MAX_DATA_BYTES, 3 * MAX_DATA_BYTES, 200_000])
  })

  test('[F10] allocates at most 12 times its limit, whatever the size of writes', () => {
    for (const size of [1, 2, 100, 70_000]) {
      const log = new OutputLog(100_000)
      const piece = new Uint8Array(size)
      for (let written = 0; written < 400_000; written += size) {
        log.append(written % 2 === 0 || size > 1 ? 'stdout' : 'stderr', piece)
        log.trim(Number.POSITIVE_INFINITY)
      }
      expect(log.allocatedBytes).toBeLessThan(12 * 100_000)
    }
  })

  test('[F10] keeps a large chunk without copying, unless its buffer is much larger', () => {
    const log = new OutputLog(1_000_000)
    const piece = new Uint8Array(100_000)
    log.append('stdout', piece)
    expect(log.read(0, 10)?.bytes.buffer).toBe(piece.buffer)
    log.append('stdout', new Uint8Array(10_000_000).subarray(0, 50_000))
    expect(log.allocatedBytes).toBe(150_000)
  })

  test('[F10] allocates little while it is short', () => {
    const log = new OutputLog(1_000_000)
    expect(log.allocatedBytes).toBe(0)
    log.append('stdout', bytes('$ '))
    expect(log.allocatedBytes).toBeLessThan(300)
  })
})

/** Operations on a log. */
const step = fc.oneof(
  fc.record({
    kind: fc.constant('append' as const),
    stream: fc.constantFrom('stdout' as const, 'stderr' as const),
    length: fc.oneof(
      fc.nat(5),
      fc.nat(300),
      fc.constantFrom(16_383, 16_384, 65_535, 65_536, 65_537, 140_000),
    ),
  }),
  fc.record({
    kind: fc.constant('trim' as const),
    keepFrom: fc.oneof(fc.nat(400), fc.nat(200_000), fc.constant(Number.POSITIVE_INFINITY)),
  }),
  fc.record({
    kind: fc.constant('read' as const),
    from: fc.double({ min: -0.1, max: 1.1, noNaN: true }),
    max: fc.oneof(fc.nat(10), fc.nat(100_000)),
  }),
)

test('[R3] a log behaves like a plain list of bytes', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.constantFrom(1, 10, 1_000, 100_000), (steps, limit) => {
      const log = new OutputLog(limit)
      const model: { stream: OutputStream; byte: number }[] = []
      let start = 0
      for (const one of steps) {
        if (one.kind === 'append') {
          const piece = Uint8Array.from({ length: one.length }, (_, index) => (model.length + index) % 251)
          log.append(one.stream, piece)
          for (const byte of piece) model.push({ stream: one.stream, byte })
        } else if (one.kind === 'trim') {
          log.trim(one.keepFrom)
          start = Math.max(start, Math.min(model.length - limit, one.keepFrom))
        } else checkRead(log, model, { from: Math.floor(one.from * model.length), max: one.max, start })
        expect([log.start, log.end]).toEqual([start, model.length])
      }
    }),
    { numRuns: 300 },
  )
})

function checkRead(
  log: OutputLog,
  model: readonly { stream: OutputStream; byte: number }[],
  { from, max, start }: { from: number; max: number; start: number },
): void {
  const slice = log.read(from, max)
  if (from < start || from >= model.length || max === 0) {
    expect(slice).toBeUndefined()
    return
  }
  const stream = model[from]?.stream
  const length = (slice?.end ?? 0) - from
  expect(length).toBeGreaterThan(0)
  expect(length).toBeLessThanOrEqual(Math.min(max, MAX_DATA_BYTES))
  expect(slice?.bytes.byteLength).toBe(length)
  const isWrong = model
    .slice(from, from + length)
    .some((entry, index) => entry.stream !== stream || entry.byte !== slice?.bytes[index])
  expect(isWrong).toBe(false)
  expect(slice?.stream).toBe(stream)
}
