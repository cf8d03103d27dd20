import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { removeEmptyObjects } from './empty-objects.ts'

const ids = { empty: 'a'.repeat(64), live: 'b'.repeat(64), alarmed: 'c'.repeat(64), broken: 'd'.repeat(64) }

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

  test('removes databases without tables, with what is beside them, and no others', () => {
    run(
      'metadata',
      'CREATE TABLE _cf_ALARM (actor_id TEXT)',
      `INSERT INTO _cf_ALARM VALUES ('${ids.alarmed}')`,
    )
    run(ids.empty, 'CREATE TABLE sandbox (id)', 'DROP TABLE sandbox')
    run(ids.live, 'CREATE TABLE sandbox (id)')
    run(ids.alarmed)
    writeFileSync(path.join(folder, `${ids.broken}.sqlite`), 'not a database')
    writeFileSync(path.join(folder, 'other.sqlite'), '')
    expect(removeEmptyObjects(folder)).toBe(1)
    const left = readdirSync(folder)
    expect(left.filter((name) => name.startsWith(ids.empty))).toEqual([])
    for (const name of [ids.live, ids.alarmed, ids.broken, 'other', 'metadata'])
      expect(left).toContain(`${name}.sqlite`)
    expect(removeEmptyObjects(folder)).toBe(0)
  })

  test('sees what is only in the log beside a database yet', () => {
    const file = path.join(folder, `${ids.live}.sqlite`)
    using database = new Database(file)
    database.run('PRAGMA journal_mode = WAL')
    database.run('CREATE TABLE sandbox (id)')
    expect(removeEmptyObjects(folder)).toBe(0)
    expect(readdirSync(folder)).toContain(`${ids.live}.sqlite-wal`)
  })

  test('finds nothing where no object ever was', () => {
    expect(removeEmptyObjects(path.join(folder, 'absent'))).toBe(0)
    expect(removeEmptyObjects(folder)).toBe(0)
  })
})
