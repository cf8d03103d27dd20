import { describe, expect, test } from 'bun:test'
import { availableParallelism, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { readMachine } from './machine.ts'

const DISK = { overcommit: 3, bytesPerSecond: 0 }

describe('readMachine', () => {
  test('reads what the machine has', () => {
    const store = { folder: join(tmpdir(), 'not', 'there', 'yet') }
    const { facts, running } = readMachine({ passed: {}, disk: DISK, store }, tmpdir())
    expect(facts).toMatchObject({ milliCpus: availableParallelism() * 1_000, diskOvercommit: 3 })
    expect(facts.memoryBytes).toBeWithin(1, totalmem() + 1)
    expect(facts.pids).toBeGreaterThan(0)
    expect(facts.diskBytes).toBeGreaterThan(0)
    expect(facts.storeBytes).toBe(facts.diskBytes)
    expect(running).toBeWithin(100, 1_001)
  })

  test('has as many slots as sandboxes may run', () => {
    const passed = { ceilings: { machine: { running: 7 } } }
    expect(readMachine({ passed, disk: DISK, store: undefined }, tmpdir()).running).toBe(7)
  })
})
