import { describe, expect, test } from 'bun:test'
import { burstBytes, type DirectionFaults, FaultQueue, READ_AHEAD_BYTES } from './fault-queue.ts'
import { patternAt, verifyPattern } from './pattern.ts'
import { Random } from './random.ts'

function createQueue(faults: DirectionFaults = {}, random = new Random(1)): FaultQueue {
  const queue = new FaultQueue(() => random.next())
  queue.setFaults(faults, 0)
  return queue
}

/** Takes all bytes that may be written by `nowMs`. */
function drain(queue: FaultQueue, nowMs: number): Uint8Array[] {
  const writes: Uint8Array[] = []
  for (;;) {
    const step = queue.next(nowMs)
    if (step.kind !== 'write') return writes
    writes.push(step.bytes)
    queue.wrote(step.bytes.length)
  }
}

describe('FaultQueue', () => {
  test('forwards bytes and the end at once without faults', () => {
    const queue = createQueue()
    queue.push(new Uint8Array([1, 2, 3]), 0)
    queue.pushClose('end', 0)
    expect(drain(queue, 0)).toEqual([new Uint8Array([1, 2, 3])])
    expect(queue.next(0)).toEqual({ kind: 'end' })
  })

  test('returns the unwritten part of a partial write again', () => {
    const queue = createQueue()
    queue.push(new Uint8Array([1, 2, 3]), 0)
    queue.wrote(1)
    expect(queue.next(0)).toEqual({ kind: 'write', bytes: new Uint8Array([2, 3]) })
    expect(queue.heldBytes).toBe(2)
  })

  test('delays bytes and the end by the latency', () => {
    const queue = createQueue({ latencyMs: 50 })
    queue.push(new Uint8Array([1]), 10)
    queue.pushClose('reset', 20)
    expect(queue.next(10)).toEqual({ kind: 'wait', untilMs: 60 })
    expect(drain(queue, 60)).toHaveLength(1)
    expect(queue.next(60)).toEqual({ kind: 'wait', untilMs: 70 })
    expect(queue.next(70)).toEqual({ kind: 'reset' })
  })

  test('stays within one burst of a rate of 1 MB/s at all times', () => {
    const rateBytesPerSecond = 1_000_000
    const queue = createQueue({ rateBytesPerSecond })
    queue.push(new Uint8Array(2_000_000), 0)
    let sent = 0
    for (let nowMs = 0; nowMs <= 1_000; nowMs++) {
      for (const write of drain(queue, nowMs)) sent += write.length
      expect(sent).toBeLessThanOrEqual((rateBytesPerSecond * nowMs) / 1_000)
      expect(sent).toBeGreaterThan((rateBytesPerSecond * nowMs) / 1_000 - burstBytes(rateBytesPerSecond))
    }
  })

  test('sends at most one burst after a pause', () => {
    const queue = createQueue({ rateBytesPerSecond: 1_000_000 })
    queue.push(new Uint8Array(100_000), 0)
    const writes = drain(queue, 60_000)
    expect(writes.reduce((sum, write) => sum + write.length, 0)).toBeLessThanOrEqual(burstBytes(1_000_000))
  })

  test('splits bytes into slices', () => {
    const queue = createQueue({ sliceBytes: 2 })
    queue.push(new Uint8Array(5), 0)
    expect(drain(queue, 0).map((write) => write.length)).toEqual([2, 2, 1])
  })

  test('holds bytes in a black hole and delivers them afterwards', () => {
    const queue = createQueue({ blackHole: true })
    queue.push(new Uint8Array([7]), 0)
    queue.pushClose('end', 0)
    expect(queue.next(1e9)).toEqual({ kind: 'idle' })
    queue.setFaults({}, 1e9)
    expect(drain(queue, 1e9)).toHaveLength(1)
    expect(queue.next(1e9)).toEqual({ kind: 'end' })
  })

  test('is full at its read-ahead, plus the bytes in flight when there is latency', () => {
    const queue = createQueue()
    queue.push(new Uint8Array(READ_AHEAD_BYTES - 1), 0)
    expect(queue.isFull).toBe(false)
    queue.push(new Uint8Array(1), 0)
    expect(queue.isFull).toBe(true)
    queue.setFaults({ latencyMs: 100, rateBytesPerSecond: 1_000_000 }, 0)
    expect(queue.capacityBytes).toBe(READ_AHEAD_BYTES + 100_000)
  })

  test('never loses, duplicates or reorders a byte while faults change', () => {
    for (let seed = 0; seed < 50; seed++) {
      const random = new Random(seed)
      const queue = createQueue({}, random.fork())
      const totalBytes = 200_000
      let [pushed, received, nowMs] = [0, 0, 0]
      const kinds: DirectionFaults[] = [
        {},
        { latencyMs: 5, jitterMs: 20 },
        { rateBytesPerSecond: 300_000 },
        { sliceBytes: 777 },
        { blackHole: true },
      ]
      while (received < totalBytes) {
        nowMs += random.int(0, 10)
        if (random.chance(0.1)) queue.setFaults(random.pick(kinds), nowMs)
        if (pushed < totalBytes && !queue.isFull) {
          const length = Math.min(random.int(1, 5_000), totalBytes - pushed)
          queue.push(patternAt(seed, pushed, length), nowMs)
          pushed += length
        }
        const step = queue.next(nowMs)
        if (step.kind !== 'write') continue
        const taken = random.int(0, step.bytes.length)
        expect(verifyPattern(seed, received, step.bytes.subarray(0, taken))).toBeUndefined()
        queue.wrote(taken)
        received += taken
      }
      expect(queue.heldBytes).toBe(0)
    }
  })
})
