import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { migrate } from '../src/sql.ts'
import { sqlOf } from './support/bun-sql.ts'

test('migrations run once each, in order, also when more are added later', () => {
  const sql = sqlOf(new Database(':memory:'))
  const first = ['CREATE TABLE a (x)', "INSERT INTO a VALUES ('one')"]
  migrate(sql, first)
  migrate(sql, first)
  migrate(sql, [...first, "INSERT INTO a VALUES ('two')"])
  expect(sql.exec('SELECT x FROM a').toArray()).toEqual([{ x: 'one' }, { x: 'two' }])
  expect(sql.exec('SELECT number FROM migrations').toArray()).toEqual([
    { number: 1 },
    { number: 2 },
    { number: 3 },
  ])
})
