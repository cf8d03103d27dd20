import { afterEach, beforeEach, expect, test } from 'bun:test'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { identifyProcess, isRunning, type ProcessIdentity } from '../data/process-identity.ts'
import { endOrphanedWorkerd, recordWorkerd } from './orphan-workerd.ts'

let folder = ''
let record = ''
let child: Bun.Subprocess | undefined
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'orphan-'))
  record = path.join(folder, 'workerd')
})
afterEach(async () => {
  child?.kill('SIGKILL')
  await child?.exited
  rmSync(folder, { recursive: true })
})

/** A process of a program with this name. */
function run(name: string): ProcessIdentity {
  const program = path.join(folder, 'bin', name)
  mkdirSync(path.dirname(program))
  copyFileSync('/bin/sleep', program)
  child = Bun.spawn([program, '60'])
  const identity = identifyProcess(child.pid)
  if (identity === undefined) throw new Error('it did not start')
  return identity
}

test('kills an orphaned workerd before the next one starts', async () => {
  const orphan = run('workerd')
  recordWorkerd(record, orphan)
  expect(await endOrphanedWorkerd(record)).toEqual(orphan)
  expect(isRunning(orphan)).toBe(false)
  expect(existsSync(record)).toBe(false)
})

test('kills an orphan whose executable was replaced', async () => {
  const orphan = run('workerd')
  rmSync(path.join(folder, 'bin/workerd'))
  recordWorkerd(record, orphan)
  expect(await endOrphanedWorkerd(record)).toEqual(orphan)
})

test('does not kill another program', async () => {
  const other = run('database')
  recordWorkerd(record, other)
  expect(await endOrphanedWorkerd(record)).toBeUndefined()
  expect(isRunning(other)).toBe(true)
})

test('does not kill a process that reuses the orphan’s pid', async () => {
  const later = run('workerd')
  recordWorkerd(record, { ...later, startTicks: later.startTicks - 1 })
  expect(await endOrphanedWorkerd(record)).toBeUndefined()
  expect(isRunning(later)).toBe(true)
})

test.each(['', '{', '{"pid":-1,"startTicks":1}', '{"pid":1,"startTicks":0}'])(
  'kills nothing for the invalid record "%s"',
  async (text) => {
    writeFileSync(record, text, { mode: 0o600 })
    expect(await endOrphanedWorkerd(record)).toBeUndefined()
  },
)
