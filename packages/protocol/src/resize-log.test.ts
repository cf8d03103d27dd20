import { describe, expect, test } from 'bun:test'
import { MAX_RESIZES } from './limits.ts'
import { ResizeLog } from './resize-log.ts'

describe('ResizeLog', () => {
  test('[S8] returns the size at every offset', () => {
    const log = new ResizeLog(80, 24)
    log.record(10, 90, 30)
    log.record(20, 100, 40)
    expect([0, 9, 10, 19, 20, 99].map((offset) => log.sizeAt(offset).cols)).toEqual([
      80, 80, 90, 90, 100, 100,
    ])
    expect(log.current).toMatchObject({ at: 20, cols: 100, rows: 40 })
  })

  test('[S8] keeps only the last of several resizes at one offset', () => {
    const log = new ResizeLog(80, 24)
    log.record(0, 81, 24)
    log.record(0, 82, 24)
    expect(log.sizeAt(0).cols).toBe(82)
    expect(log.after(0)?.cols).toBe(82)
    expect(log.after(log.current.serial)).toBeUndefined()
  })

  test('[S8] lists the resizes after an offset', () => {
    const log = new ResizeLog(80, 24)
    for (const at of [5, 10, 15]) log.record(at, at, 24)
    expect(log.between(5, 15).map(({ at }) => at)).toEqual([10, 15])
    expect(log.after(1)?.at).toBe(10)
  })

  test('[B6] drops the oldest resizes over its limit, and never the current size', () => {
    const log = new ResizeLog(80, 24)
    for (let at = 1; at <= 10_000; at += 1) log.record(at, 1 + (at % 500), 24)
    expect(log.between(-1, 20_000)).toHaveLength(MAX_RESIZES)
    expect(log.current.at).toBe(10_000)
    expect(log.sizeAt(0)).toEqual(log.sizeAt(10_000 - MAX_RESIZES + 1))
    expect(log.after(0)?.at).toBe(10_000 - MAX_RESIZES + 1)
  })
})
