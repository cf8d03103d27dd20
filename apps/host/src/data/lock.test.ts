import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { DataLock, type LockOutcome, readHolder } from './lock.ts'
import { identifyProcess } from './process-identity.ts'

let folder = ''
let file = ''
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'lock-'))
  file = path.join(folder, 'lock')
})
afterEach(() => rmSync(folder, { recursive: true }))

function taken(outcome: LockOutcome): DataLock {
  if (outcome.kind !== 'taken') throw new Error('held')
  return outcome.lock
}

test('the lock file has the holder’s process, URL and socket', () => {
  const lock = taken(DataLock.take(file))
  expect(statSync(file).mode & 0o777).toBe(0o600)
  lock.describe({ url: 'http://localhost:1', socket: '/s' })
  expect(readHolder(file)).toMatchObject({
    ...identifyProcess(process.pid),
    url: 'http://localhost:1',
    socket: '/s',
  })
  lock.release()
  expect(existsSync(file)).toBe(false)
})

test('a lock is held by one at a time', () => {
  const lock = taken(DataLock.take(file))
  expect(DataLock.take(file)).toMatchObject({ kind: 'held', holder: { pid: process.pid } })
  lock.release()
  taken(DataLock.take(file)).release()
})

test('a lock file that names a running process counts as held', () => {
  writeFileSync(file, JSON.stringify(identifyProcess(process.ppid)))
  expect(DataLock.take(file)).toMatchObject({ kind: 'held', holder: { pid: process.ppid } })
})

test('the lock of a copied data folder is free, although the file names the holder of the original', () => {
  writeFileSync(file, JSON.stringify(identifyProcess(process.ppid)))
  const lock = taken(DataLock.take(file, { isCopy: true }))
  expect(readHolder(file)?.pid).toBe(process.pid)
  lock.release()
})

test.each([
  ['a process that ended', JSON.stringify({ pid: 2 ** 22 + 1, startTicks: 1 })],
  ['an earlier process with the pid of a running one', JSON.stringify({ pid: process.ppid, startTicks: 1 })],
  ['no process, truncated', '{"pid":1'],
  ['no process', ''],
])('a lock that names %s is taken over', (_who, text) => {
  writeFileSync(file, text)
  const lock = taken(DataLock.take(file))
  expect(readHolder(file)?.pid).toBe(process.pid)
  lock.release()
})
