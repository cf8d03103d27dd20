import { describe, expect, test } from 'bun:test'
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import {
  descendantsOf,
  findProcess,
  listOpenFiles,
  listProcesses,
  parseStatus,
  signalProcess,
  sumOnce,
} from './process-table.ts'

const STATUS = `Name:\tbun\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t420\nNgid:\t0\nPid:\t420\nPPid:\t17
TracerPid:\t0\nUid:\t1879048193\t1879048193\t1879048193\t1879048193\nGid:\t5\t5\t5\t5\nNStgid:\t420\t2
NSpid:\t420\t2\nVmRSS:\t    2048 kB\n`

describe('the process table', () => {
  test('parses /proc/PID/status', () => {
    expect(parseStatus(STATUS)).toEqual({
      pid: 420,
      parent: 17,
      uid: 1_879_048_193,
      innerPid: 2,
      residentBytes: 2_097_152,
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

test('finds deleted files that are held open, and counts each once (threat T32)', () => {
  const file = path.join(tmpdir(), `open-${crypto.randomUUID()}`)
  const fds = [openSync(file, 'w'), openSync(file, 'r')]
  writeSync(fds[0] ?? -1, new Uint8Array(65_536))
  rmSync(file)
  const found = listOpenFiles(process.pid, 'all').filter(({ isNamed, isMemory, bytes }) => {
    return !isNamed && !isMemory && bytes === 65_536
  })
  for (const fd of fds) closeSync(fd)
  expect(found).toHaveLength(2)
  expect(sumOnce(found)).toBe(65_536)
})

test('finds unmapped memory files (threat T32)', async () => {
  const script =
    'import os; fd = os.memfd_create("x"); os.write(fd, b"x" * 65536); print(flush=True); input()'
  const child = Bun.spawn(['python3', '-c', script], { stdin: 'pipe', stdout: 'pipe' })
  await child.stdout.getReader().read()
  expect(sumOnce(listOpenFiles(child.pid, 'memory'))).toBe(65_536)
  child.kill('SIGKILL')
  await child.exited
})

test('lists no open files for a process that ended', () => {
  expect(listOpenFiles(2 ** 30, 'all')).toEqual([])
})
