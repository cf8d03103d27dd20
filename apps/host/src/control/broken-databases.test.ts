import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { refuseBrokenDatabases } from './broken-databases.ts'

let folder = ''
let file = ''
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'databases-'))
  mkdirSync(path.join(folder, 'account'))
  file = path.join(folder, 'account', 'a.sqlite')
  using database = new Database(file)
  database.run('CREATE TABLE words (word TEXT)')
  database.run(`INSERT INTO words VALUES ('${'x'.repeat(20_000)}')`)
})
afterEach(() => rmSync(folder, { recursive: true }))

const refuse = (): void => refuseBrokenDatabases(folder)

test('whole, new and empty databases are used', () => {
  expect(refuse).not.toThrow()
  using database = new Database(path.join(folder, 'account', 'b.sqlite'))
  database.run('PRAGMA journal_mode = WAL')
  database.run('CREATE TABLE words (word TEXT)')
  writeFileSync(path.join(folder, 'account', 'c.sqlite'), '')
  expect(refuse).not.toThrow()
})

test.each([1, 100, 3_000, 4_096, 8_192])('one that was cut to %d bytes is named, and stays', (bytes) => {
  truncateSync(file, bytes)
  expect(refuse).toThrow(`Cannot use "${file}": it is no whole database`)
  expect(readFileSync(file)).toHaveLength(bytes)
})

test('something else in its place is named', () => {
  writeFileSync(file, 'x'.repeat(8_192))
  expect(refuse).toThrow(`Cannot use "${file}"`)
})

test('what is in a log is left to SQLite, but not a log beside nothing or something else', () => {
  truncateSync(file, 3_000)
  writeFileSync(`${file}-wal`, 'x')
  expect(refuse).not.toThrow()
  writeFileSync(file, 'x'.repeat(4_096))
  expect(refuse).toThrow(`Cannot use "${file}"`)
  writeFileSync(file, '')
  expect(refuse).toThrow(`Cannot use "${file}"`)
})
