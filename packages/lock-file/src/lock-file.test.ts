import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { LockFile, openLockFile } from './lock-file.ts'

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'lock-'))
  file = path.join(folder, 'lock')
})
afterEach(() => rmSync(folder, { recursive: true }))

test('is held by one owner at a time and removed afterwards', async () => {
  let owners = 0
  let most = 0
  const work = async (): Promise<void> => {
    using lock = await openLockFile(file, 60_000)
    expect(lock).toBeDefined()
    most = Math.max(most, ++owners)
    await new Promise((resolve) => setImmediate(resolve))
    owners--
  }
  await Promise.all(Array.from({ length: 8 }, work))
  expect(most).toBe(1)
  expect(existsSync(file)).toBe(false)
})

test('is readable by its owner alone', () => {
  using lock = LockFile.tryOpen(file)
  expect(lock).toBeDefined()
  expect(statSync(file).mode & 0o777).toBe(0o600)
})

test('takes over the file that a dead process left', async () => {
  const script = `
    const { LockFile } = await import(${JSON.stringify(path.join(import.meta.dir, 'lock-file.ts'))})
    if (LockFile.tryOpen(${JSON.stringify(file)}) === undefined) process.exit(2)
    process.kill(process.pid, 'SIGKILL')
  `
  const child = Bun.spawnSync([process.execPath, '-e', script])
  expect(child.signalCode).toBe('SIGKILL')
  expect(existsSync(file)).toBe(true)
  using lock = LockFile.tryOpen(file)
  expect(lock).toBeDefined()
})

test('takes over a file that nobody has locked', () => {
  writeFileSync(file, 'anything')
  using lock = LockFile.tryOpen(file)
  expect(lock).toBeDefined()
})

test('gives up when the lock is held beyond the timeout', async () => {
  using lock = LockFile.tryOpen(file)
  expect(lock).toBeDefined()
  expect(await openLockFile(file, 60)).toBeUndefined()
})
