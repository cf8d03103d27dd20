import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { MAX_INPUT_FRAME_BYTES } from '../limits.ts'
import { type Outgoing, SendLog } from './send-log.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const shown = (frame: Outgoing | undefined): unknown =>
  frame instanceof Uint8Array ? new TextDecoder().decode(frame) : frame

/** Everything that may be sent up to an offset. */
function sendAll(log: SendLog, limit = Number.POSITIVE_INFINITY): unknown[] {
  const sent: unknown[] = []
  for (let next = log.next(limit); next !== undefined; next = log.next(limit)) sent.push(shown(next))
  return sent
}

describe('SendLog', () => {
  test('[I6] sends in order and numbers control messages as they go', () => {
    const log = new SendLog()
    log.write(bytes('ab'))
    log.queueControl({ type: 'resize', cols: 1, rows: 2 })
    log.write(bytes('c'))
    log.queueControl({ type: 'eof' })
    expect(sendAll(log)).toEqual([
      'ab',
      { type: 'resize', cols: 1, rows: 2, at: 2, seq: 1 },
      'c',
      { type: 'eof', at: 3, seq: 2 },
    ])
  })

  test('[I3] sends no more than its credit', () => {
    const log = new SendLog()
    log.write(bytes('abcdef'))
    expect(sendAll(log, 4)).toEqual(['abcd'])
    expect(sendAll(log, 4)).toEqual([])
    expect(sendAll(log, 5)).toEqual(['e'])
    expect(log.heldBytes).toBe(6)
  })

  test('[I7] lets a signal overtake bytes that wait, in the order of signals', () => {
    const log = new SendLog()
    log.write(bytes('abcdef'))
    sendAll(log, 2)
    log.queueControl({ type: 'eof' })
    log.queueControl({ type: 'signal', signal: 'SIGINT' })
    log.queueControl({ type: 'signal', signal: 'SIGTERM' })
    expect(sendAll(log, 2)).toEqual([
      { type: 'signal', signal: 'SIGINT', at: 2, seq: 1 },
      { type: 'signal', signal: 'SIGTERM', at: 2, seq: 2 },
    ])
    expect(sendAll(log)).toEqual(['cdef', { type: 'eof', at: 6, seq: 3 }])
  })

  test('[I14] keeps of very many sizes the last, and of each signal one', () => {
    const log = new SendLog()
    const wait = (count: number): void => {
      for (let rows = 1; rows <= count; rows += 1) {
        log.queueControl({ type: 'resize', cols: 80, rows })
        log.queueControl({ type: 'signal', signal: 'SIGINT' })
        log.write(bytes('a'))
      }
    }
    wait(32)
    expect(sendAll(log).filter((frame) => typeof frame === 'object')).toHaveLength(64)
    wait(1_000)
    log.queueControl({ type: 'signal', signal: 'SIGTERM' })
    const sent = sendAll(log).filter((frame) => typeof frame === 'object')
    expect(sent.length).toBeLessThanOrEqual(66)
    expect(sent).toContainEqual(expect.objectContaining({ signal: 'SIGTERM' }))
    expect(sent.at(-1)).toMatchObject({ type: 'resize', rows: 1_000 })
  })

  test('[R2] sends again what was not accepted, with the same numbers', () => {
    const log = new SendLog()
    log.write(bytes('abc'))
    log.queueControl({ type: 'signal', signal: 'SIGINT' })
    const first = sendAll(log)
    expect(log.rewind(0, 0)).toBe(true)
    expect(sendAll(log)).toEqual(first)
    expect(log.rewind(2, 1)).toBe(true)
    expect(sendAll(log)).toEqual(['c'])
    expect(log.heldBytes).toBe(1)
    expect(log.rewind(3, 1)).toBe(true)
    expect(log.isEmpty).toBe(true)
  })

  test('[R2] notices a server that took more than was sent, or less than it had', () => {
    const log = new SendLog()
    log.write(bytes('abc'))
    sendAll(log)
    expect(log.acknowledge(4, 0)).toBe(false)
    expect(log.acknowledge(3, 1)).toBe(false)
    expect(log.acknowledge(2, 0)).toBe(true)
    expect(log.rewind(1, 0)).toBe(false)
  })

  test('[R2] takes an old confirmation without harm', () => {
    const log = new SendLog()
    log.write(bytes('abc'))
    sendAll(log)
    log.acknowledge(3, 0)
    expect(log.acknowledge(1, 0)).toBe(true)
    expect(log.heldBytes).toBe(0)
  })

  test('[I9] tells how much it gives up', () => {
    const log = new SendLog()
    log.write(bytes('abcdef'))
    log.queueControl({ type: 'eof' })
    sendAll(log, 4)
    expect(log.discard(1, 0)).toBe(5)
    expect(log.isEmpty).toBe(true)
    log.write(bytes('x'))
    expect(sendAll(log)).toEqual(['x'])
    expect(log.sentAt).toBe(2)
  })

  test('[I9] drops waiting bytes and keeps control messages, or the other way round', () => {
    const log = new SendLog()
    log.write(bytes('ab'))
    log.queueControl({ type: 'eof' })
    expect(log.dropQueuedBytes()).toBe(2)
    expect(sendAll(log)).toEqual([{ type: 'eof', at: 0, seq: 1 }])
    log.write(bytes('cd'))
    log.queueControl({ type: 'eof' })
    log.dropQueuedControls()
    expect(sendAll(log)).toEqual(['cd'])
  })

  test('[H5] sends frames small enough for a slow path', () => {
    const log = new SendLog()
    log.write(new Uint8Array(100_000))
    let largest = 0
    for (let next = log.next(Infinity); next instanceof Uint8Array; next = log.next(Infinity))
      largest = Math.max(largest, next.byteLength)
    expect(largest).toBe(MAX_INPUT_FRAME_BYTES)
  })

  test('[I11] joins what is written byte by byte, so that a megabyte of it is quick', () => {
    const log = new SendLog()
    for (let times = 0; times < 200_000; times += 1) log.write(Uint8Array.of(times & 255))
    expect(log.heldBytes).toBe(200_000)
    let frames = 0
    while (log.next(Number.POSITIVE_INFINITY) !== undefined) frames += 1
    expect(frames).toBeLessThan(100)
    for (let at = 1; at <= 200_000; at += 1) log.acknowledge(at, 0)
    expect(log.isEmpty).toBe(true)
  })

  test('ignores empty writes', () => {
    const log = new SendLog()
    log.write(new Uint8Array(0))
    expect(log.isEmpty).toBe(true)
  })
})

/** What can happen to input on its way. */
const step = fc.oneof(
  fc.record({ kind: fc.constant('write' as const), length: fc.oneof(fc.nat(6), fc.nat(9_000)) }),
  fc.record({ kind: fc.constantFrom('eof' as const, 'signal' as const, 'resize' as const) }),
  fc.record({ kind: fc.constant('send' as const), credit: fc.nat(20_000), frames: fc.nat(6) }),
  fc.record({
    kind: fc.constantFrom('confirm' as const, 'cut' as const),
    part: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
)

test('[R14] whatever is cut and when, a server that takes what is next gets every byte once and in order', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const log = new SendLog()
      const written: number[] = []
      /** What the server has, and what is on its way to it. */
      const got: number[] = []
      let seq = 0
      let flying: Outgoing[] = []
      const arrive = (frame: Outgoing): void => {
        if (frame instanceof Uint8Array) got.push(...frame)
        else if ('seq' in frame) {
          expect([frame.seq, frame.at]).toEqual([seq + 1, got.length])
          seq += 1
        }
      }
      const land = (part: number): void => {
        for (const frame of flying.splice(0, Math.ceil(flying.length * part))) arrive(frame)
      }
      const send = (limit: number, frames: number): void => {
        for (let count = 0; count < frames; count += 1) {
          const next = log.next(limit)
          if (next !== undefined) flying.push(next)
        }
      }
      for (const one of steps) {
        if (one.kind === 'write') {
          const piece = Uint8Array.from({ length: one.length }, (_, index) => (written.length + index) % 251)
          written.push(...piece)
          log.write(piece)
        } else if (one.kind === 'send') send(got.length + one.credit, one.frames)
        else if (one.kind === 'confirm') {
          land(one.part)
          expect(log.acknowledge(got.length, seq)).toBe(true)
        } else if (one.kind === 'cut') {
          land(one.part)
          flying = []
          expect(log.rewind(got.length, seq)).toBe(true)
        } else
          log.queueControl(
            one.kind === 'eof'
              ? { type: 'eof' }
              : one.kind === 'signal'
                ? { type: 'signal', signal: 'SIGINT' }
                : { type: 'resize', cols: 1, rows: 1 },
          )
      }
      send(Number.POSITIVE_INFINITY, 10_000)
      land(1)
      expect(got).toEqual(written)
      expect(log.acknowledge(got.length, seq)).toBe(true)
      expect(log.isEmpty).toBe(true)
      expect(log.heldBytes).toBe(0)
    }),
    { numRuns: 300 },
  )
})
