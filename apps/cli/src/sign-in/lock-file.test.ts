import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import path from 'node:path'
import { isStale, openLock } from './lock-file.ts'

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'lock-'))
  file = path.join(folder, 'lock')
})
afterEach(() => rmSync(folder, { recursive: true }))

/** A process that has ended. */
function deadPid(): number {
  return Bun.spawnSync(['true']).pid
}

describe('isStale', () => {
  const cases: readonly (readonly [string, string, number, boolean])[] = [
    ['of a process that lives', `${hostname()} ${process.pid} aa`, 0, false],
    ['of one that ended', `${hostname()} ${deadPid()} aa`, 0, true],
    ['of another machine', 'elsewhere 1 aa', 0, false],
    ['of another machine, old', 'elsewhere 1 aa', 61_000, true],
    ['that is being written', '', 0, false],
    ['that nobody wrote', '', 61_000, true],
  ]
  for (const [what, text, ageMs, expected] of cases)
    test(`knows a lock ${what}`, () => expect(isStale(text, ageMs)).toBe(expected))
})

test('a lock is held by one at a time, in turn', async () => {
  let holders = 0
  let most = 0
  const work = async (): Promise<void> => {
    using _lock = await openLock(file)
    most = Math.max(most, ++holders)
    await new Promise((resolve) => setImmediate(resolve))
    holders--
  }
  await Promise.all(Array.from({ length: 8 }, work))
  expect(most).toBe(1)
  expect(existsSync(file)).toBe(false)
})

test('a lock that a dead process left is broken', async () => {
  writeFileSync(file, `${hostname()} ${deadPid()} aa`)
  {
    using _lock = await openLock(file)
    expect(readFileSync(file, 'utf8')).toContain(` ${process.pid} `)
  }
  expect(existsSync(file)).toBe(false)
})

test('a lock that was broken and taken by another is left to it', async () => {
  {
    using _lock = await openLock(file)
    writeFileSync(file, 'elsewhere 1 aa')
  }
  expect(readFileSync(file, 'utf8')).toBe('elsewhere 1 aa')
})

test('a lock is broken although whoever was breaking it before died', async () => {
  writeFileSync(file, `${hostname()} ${deadPid()} aa`)
  writeFileSync(`${file}.break`, `${hostname()} ${deadPid()} bb`)
  utimesSync(`${file}.break`, 1, 1)
  using _lock = await openLock(file)
  expect(existsSync(`${file}.break`)).toBe(false)
})
