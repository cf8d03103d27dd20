import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import {
  checkpointDatabases,
  findDamagedDatabases,
  refuseBrokenDatabases,
  removeEmptyObjects,
} from './object-databases.ts'

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

test('accepts intact, new and empty databases', () => {
  expect(refuse).not.toThrow()
  using database = new Database(path.join(folder, 'account', 'b.sqlite'))
  database.run('PRAGMA journal_mode = WAL')
  database.run('CREATE TABLE words (word TEXT)')
  writeFileSync(path.join(folder, 'account', 'c.sqlite'), '')
  expect(refuse).not.toThrow()
})

test.each([1, 100, 3_000, 4_096, 8_192])(
  'names a database that was truncated to %d bytes, and leaves it unchanged',
  (bytes) => {
    truncateSync(file, bytes)
    expect(refuse).toThrow(`Cannot use "${file}": the database is damaged`)
    expect(readFileSync(file)).toHaveLength(bytes)
  },
)

test('finds a database that is damaged in the middle, also while another process has it open', async () => {
  expect(await findDamagedDatabases(folder)).toEqual([])
  const open = new Database(path.join(folder, 'account', 'b.sqlite'))
  open.run('PRAGMA journal_mode = WAL')
  open.run('CREATE TABLE words (word TEXT)')
  open.run('BEGIN EXCLUSIVE')
  const bytes = readFileSync(file)
  bytes.fill(0xff, 4_096, 8_192)
  writeFileSync(file, bytes)
  expect(refuse).not.toThrow()
  expect(await findDamagedDatabases(folder)).toEqual([file])
  expect(readdirSync(path.join(folder, 'account')).toSorted()).toEqual([
    'a.sqlite',
    'b.sqlite',
    'b.sqlite-shm',
    'b.sqlite-wal',
  ])
  open.close()
})

test('names a file that is not a database', () => {
  writeFileSync(file, 'x'.repeat(8_192))
  expect(refuse).toThrow(`Cannot use "${file}"`)
})

test('leaves a truncated database with a WAL to SQLite, but refuses a WAL beside an empty or foreign file', () => {
  truncateSync(file, 3_000)
  writeFileSync(`${file}-wal`, 'x')
  expect(refuse).not.toThrow()
  writeFileSync(file, 'x'.repeat(4_096))
  expect(refuse).toThrow(`Cannot use "${file}"`)
  writeFileSync(file, '')
  expect(refuse).toThrow(`Cannot use "${file}"`)
})

const ids = { empty: 'a'.repeat(64), live: 'b'.repeat(64), alarmed: 'c'.repeat(64), broken: 'd'.repeat(64) }

const never = (): void => expect.unreachable()

describe('removeEmptyObjects', () => {
  let folder = ''
  const run = (name: string, ...statements: string[]): void => {
    using database = new Database(path.join(folder, `${name}.sqlite`))
    database.run('PRAGMA journal_mode = WAL')
    for (const statement of statements) database.run(statement)
  }
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'objects-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  test('removes databases without tables and their companions, and no others', () => {
    run(
      'metadata',
      'CREATE TABLE _cf_ALARM (actor_id TEXT)',
      `INSERT INTO _cf_ALARM VALUES ('${ids.alarmed}')`,
    )
    run(
      ids.empty,
      'CREATE TABLE sandbox (id)',
      'DROP TABLE sandbox',
      'CREATE TABLE _cf_METADATA (key, value)',
    )
    run(ids.live, 'CREATE TABLE sandbox (id)')
    run(ids.alarmed)
    writeFileSync(path.join(folder, `${ids.broken}.sqlite`), 'not a database')
    writeFileSync(path.join(folder, 'other.sqlite'), '')
    const forgotten: string[] = []
    const forget = (files: readonly string[]): void => {
      // A crash in between leaves nothing that must be there.
      expect(files.every((file) => existsSync(file))).toBe(true)
      forgotten.push(...files)
    }
    expect(removeEmptyObjects(folder, forget)).toBe(1)
    expect(forgotten).toEqual([path.join(folder, `${ids.empty}.sqlite`)])
    const left = readdirSync(folder)
    expect(left.filter((name) => name.startsWith(ids.empty))).toEqual([])
    for (const name of [ids.live, ids.alarmed, ids.broken, 'other', 'metadata'])
      expect(left).toContain(`${name}.sqlite`)
    expect(removeEmptyObjects(folder, never)).toBe(0)
  })

  test('reads content that is only in the WAL', () => {
    const file = path.join(folder, `${ids.live}.sqlite`)
    using database = new Database(file)
    database.run('PRAGMA journal_mode = WAL')
    database.run('CREATE TABLE sandbox (id)')
    expect(removeEmptyObjects(folder, never)).toBe(0)
    expect(readdirSync(folder)).toContain(`${ids.live}.sqlite-wal`)
  })

  test('finds nothing in a folder without objects', () => {
    expect(removeEmptyObjects(path.join(folder, 'absent'), never)).toBe(0)
    expect(removeEmptyObjects(folder, never)).toBe(0)
  })
})

test('checkpointDatabases makes a copy of the database file alone whole', () => {
  // A process that is killed leaves the log.
  const script = `
    const database = new (require('bun:sqlite').Database)(process.argv[1])
    database.run('PRAGMA journal_mode = WAL')
    database.run("INSERT INTO words VALUES ('logged')")
    process.kill(process.pid, 'SIGKILL')
  `
  Bun.spawnSync([process.execPath, '-e', script, file])
  const count = (copy: string): unknown => {
    writeFileSync(copy, readFileSync(file))
    using database = new Database(copy)
    return database.query("SELECT COUNT(*) FROM words WHERE word = 'logged'").values()[0]?.[0]
  }
  expect(count(path.join(folder, 'before'))).toBe(0)
  checkpointDatabases(folder)
  expect(readdirSync(path.dirname(file))).toEqual(['a.sqlite'])
  expect(count(path.join(folder, 'after'))).toBe(1)
})
