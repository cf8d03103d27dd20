import { describe, expect, test } from 'bun:test'
import { descendantsOf, findProcess, listProcesses, parseStatus, signalProcess } from './process-table.ts'

const STATUS = `Name:\tbun\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t420\nNgid:\t0\nPid:\t420\nPPid:\t17
FDSize:\t256
TracerPid:\t0\nUid:\t1879048193\t1879048193\t1879048193\t1879048193\nGid:\t5\t5\t5\t5\nNStgid:\t420\t2
NSpid:\t420\t2\nVmRSS:\t    2048 kB\nVmPTE:\t      44 kB\nVmSwap:\t       8 kB\n`

describe('the process table', () => {
  test('parses /proc/PID/status', () => {
    expect(parseStatus(STATUS)).toEqual({
      pid: 420,
      parent: 17,
      uid: 1_879_048_193,
      innerPid: 2,
      residentBytes: 2_105_344,
      pageTableBytes: 45_056,
      descriptors: 256,
      isZombie: false,
    })
    expect(parseStatus(STATUS.replace('S (sleeping)', 'Z (zombie)')).isZombie).toBe(true)
  })

  test('finds descendants of all generations, and not the process itself', () => {
    const entry = (pid: number, parent: number) => ({ ...parseStatus(STATUS), pid, parent })
    const table = [entry(2, 1), entry(3, 2), entry(4, 3), entry(5, 1)]
    expect(descendantsOf(2, table).map(({ pid }) => pid)).toEqual([3, 4])
  })

  test('has this process, and no process that ended', () => {
    expect(findProcess(process.pid)?.parent).toBe(process.ppid)
    expect(listProcesses().some(({ pid }) => pid === process.pid)).toBe(true)
    expect(findProcess(2 ** 22 + 1)).toBeUndefined()
    expect(signalProcess(2 ** 22 + 1, 'SIGTERM')).toBe(false)
  })
})
