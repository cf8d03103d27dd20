import { eventually } from '@sandwire/testing'
import { expect, test } from 'bun:test'
import { createStartProcess } from '../start-process.ts'
import { record } from '../recorded-process.fixture.ts'
import { ProcessScanner } from './process-scanner.ts'
import { isAlive, listPids, type MarkedEntry, readMarked } from './process-table.ts'
import type { ProcessTree } from './process-tree.ts'

const tree = (leaderPid: number): ProcessTree => ({
  leaderPid,
  leaderStartTicks: '1',
  marker: `session-${leaderPid}`,
})

const entry = (pid: number): MarkedEntry => ({
  pid,
  name: 'x',
  parentPid: 1,
  groupId: pid,
  sessionId: pid,
  startTicks: '1',
  isDead: false,
  tag: undefined,
  markers: [],
})

/** A table whose scans are counted. */
function createTable(pids: readonly number[]) {
  const counts = { scans: 0, reads: 0, checks: 0 }
  const alive = new Set(pids)
  return {
    counts,
    alive,
    listPids: () => {
      counts.scans += 1
      return [...alive]
    },
    readMarked: (pid: number) => {
      counts.reads += 1
      return alive.has(pid) ? entry(pid) : undefined
    },
    isAlive: ({ pid }: { pid: number }) => {
      counts.checks += 1
      return alive.has(pid)
    },
  }
}

test('one scan answers all requests that were made before it', async () => {
  const pids = Array.from({ length: 50 }, (_, index) => 1_000 + index)
  const table = createTable(pids)
  const scanner = new ProcessScanner(table)
  const views = await Promise.all(pids.map((pid) => scanner.find(tree(pid))))
  expect(views.map(({ members }) => members.map(({ pid }) => pid))).toEqual(pids.map((pid) => [pid]))
  expect(table.counts).toMatchObject({ scans: 1, reads: 50 })
})

test('a request that is made during a scan gets a later one', async () => {
  const table = createTable([1_000])
  const scanner = new ProcessScanner({
    ...table,
    readMarked: (pid) => {
      late ??= scanner.find(tree(1_001))
      table.alive.add(1_001)
      return table.readMarked(pid)
    },
  })
  let late: ReturnType<ProcessScanner['find']> | undefined
  expect((await scanner.find(tree(1_000))).members).toHaveLength(1)
  expect((await late)?.members).toHaveLength(1)
  expect(table.counts.scans).toBe(2)
})

test('a scan that fails leaves every tree uncertain, and the next one succeeds', async () => {
  const table = createTable([1_000])
  let failures = 1
  const scanner = new ProcessScanner({
    ...table,
    readMarked: (pid) => {
      if (failures > 0) {
        failures -= 1
        throw new Error('EMFILE')
      }
      return table.readMarked(pid)
    },
  })
  expect(await scanner.find(tree(1_000))).toEqual({ members: [], isCertain: false })
  expect((await scanner.find(tree(1_000))).members).toHaveLength(1)
})

test('hasName finds a living process by the beginning of its name', async () => {
  const table = createTable([1_000])
  const named = (name: string, isDead = false) =>
    new ProcessScanner({ ...table, readMarked: (pid) => ({ ...entry(pid), name, isDead }) })
  expect(await named('git').hasName('git')).toBe(true)
  expect(await named('git-lfs').hasName('git')).toBe(true)
  expect(await named('digit').hasName('git')).toBe(false)
  expect(await named('git', true).hasName('git')).toBe(false)
})

test('awaitChange resolves when a process has exited, or at the deadline', async () => {
  const table = createTable([1_000, 1_001])
  const scanner = new ProcessScanner(table)
  const later = performance.now() + 60_000
  const changed = scanner.awaitChange([entry(1_000)], later)
  expect(await scanner.awaitChange([entry(1_001)], performance.now())).toBe(false)
  expect(await scanner.awaitChange([], later)).toBe(true)
  table.alive.delete(1_000)
  expect(await changed).toBe(true)
})

test('ending many sessions scans the process table a few times, not once for each', async () => {
  let scans = 0
  const scanner = new ProcessScanner({
    listPids: () => {
      scans += 1
      return listPids()
    },
    readMarked,
    isAlive,
  })
  const start = createStartProcess({ scanner })
  const runs = Array.from({ length: 60 }, () => record(start, ['sleep', '600']))
  await Promise.all(runs.map(({ process }) => process.terminate()))
  const ends = await Promise.all(runs.map(({ ended }) => ended))
  expect(ends.map(({ signal }) => signal)).toEqual(runs.map(() => 'SIGHUP'))
  expect(scans).toBeLessThan(30)
})

test('a leader is signaled once, without waiting for a scan', async () => {
  const scan = Promise.withResolvers<void>()
  const scanner = new ProcessScanner()
  const find = scanner.find.bind(scanner)
  scanner.find = async (tree) => {
    await scan.promise
    return find(tree)
  }
  const start = createStartProcess({ scanner, hangupMs: 60_000 })
  const run = record(start, [
    'sh',
    '-c',
    'trap "echo hup" HUP; trap "exit 3" USR1; echo up; while :; do sleep 0.01; done',
  ])
  await eventually(() => run.text().includes('up'), { what: 'the trap' })
  const terminated = run.process.terminate()
  await eventually(() => run.text().includes('hup'), { what: 'the signal' })
  scan.resolve()
  await find({ leaderPid: run.process.pid, leaderStartTicks: '', marker: 'none' })
  run.process.signal('SIGUSR1')
  expect(await run.ended).toMatchObject({ code: 3 })
  await terminated
  expect(run.text().match(/hup/g)).toHaveLength(1)
})
