import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { DESTROYED_LOGS_SCHEMA, DestroyedLogs } from '../src/account/destroyed-logs.ts'
import { sqlOf } from './support/bun-sql.ts'

const DAY_MS = 24 * 60 * 60 * 1000

function open(): DestroyedLogs {
  const sql = sqlOf(new Database(':memory:'))
  for (const statement of DESTROYED_LOGS_SCHEMA) sql.exec(statement)
  return new DestroyedLogs(sql)
}

test('logs of destroyed sandboxes are found by id, and by name the last one', () => {
  const logs = open()
  logs.add({ sandbox: 'a', name: 'dev', log: 'first' }, 1)
  logs.add({ sandbox: 'b', name: 'dev', log: 'second' }, 2)
  // A repeated destruction finds no log.
  logs.add({ sandbox: 'b', name: 'dev', log: '' }, 3)
  expect([logs.find('a', 3), logs.find('dev', 3), logs.find('none', 3)]).toEqual([
    'first',
    'second',
    undefined,
  ])
})

test('logs of destroyed sandboxes are kept for 30 days, and those of the last 20', () => {
  const logs = open()
  for (let at = 0; at < 25; at += 1) logs.add({ sandbox: `s${at}`, name: 'dev', log: `log ${at}` }, at)
  expect([logs.find('s4', 25), logs.find('s5', 25)]).toEqual([undefined, 'log 5'])
  expect(logs.find('s24', 24 + 30 * DAY_MS)).toBeUndefined()
})
