import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { hasSchema, openSchema } from '../src/sql.ts'
import { sqlOf } from './support/bun-sql.ts'

const SCHEMA = { version: 2, statements: ['CREATE TABLE a (x)', "INSERT INTO a VALUES ('one')"] }

test('creates the tables of a store once', () => {
  const sql = sqlOf(new Database(':memory:'))
  expect(hasSchema(sql)).toBe(false)
  openSchema(sql, SCHEMA)
  openSchema(sql, SCHEMA)
  expect(hasSchema(sql)).toBe(true)
  expect(sql.exec('SELECT x FROM a').toArray()).toEqual([{ x: 'one' }])
})

test('refuses a store with another schema', () => {
  const newer = sqlOf(new Database(':memory:'))
  openSchema(newer, { ...SCHEMA, version: 3 })
  expect(() => openSchema(newer, SCHEMA)).toThrow('its schema version is 3, this version needs 2')
  const older = sqlOf(new Database(':memory:'))
  older.exec('CREATE TABLE migrations (number INTEGER PRIMARY KEY)')
  expect(() => openSchema(older, SCHEMA)).toThrow('its schema version is an older one')
})
