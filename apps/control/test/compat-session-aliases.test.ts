import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { SESSION_ALIAS_SCHEMA, SessionAliases } from '../src/compat/session-aliases.ts'
import { sqlOf } from './support/bun-sql.ts'

function open(): SessionAliases {
  const sql = sqlOf(new Database(':memory:'))
  for (const statement of SESSION_ALIAS_SCHEMA) sql.exec(statement)
  return new SessionAliases((query, ...bindings) => sql.exec(query, ...bindings).toArray())
}

test('an alias resolves to its last session, within its own account only (threat T4)', () => {
  const aliases = open()
  aliases.put('ada', 'tab', 's1')
  aliases.put('bob', 'tab', 's2')
  aliases.put('ada', 'tab', 's3')
  expect([aliases.find('ada', 'tab'), aliases.find('bob', 'tab'), aliases.find('eve', 'tab')]).toEqual([
    's3',
    's2',
    undefined,
  ])
})

test('an account keeps its newest 128 aliases', () => {
  const aliases = open()
  aliases.put('bob', 'tab', 's')
  for (let count = 0; count < 500; count += 1) aliases.put('ada', `tab-${count}`, 's')
  const kept = Array.from({ length: 500 }, (_, count) => aliases.find('ada', `tab-${count}`)).filter(Boolean)
  expect(kept).toHaveLength(128)
  expect(aliases.find('ada', 'tab-499')).toBe('s')
  expect(aliases.find('ada', 'tab-371')).toBeUndefined()
  expect(aliases.find('bob', 'tab')).toBe('s')
})

test('all accounts together keep the newest 4,096 aliases', () => {
  const aliases = open()
  for (let count = 0; count < 5_000; count += 1) aliases.put(`account-${count}`, 'tab', 's')
  const kept = Array.from({ length: 5_000 }, (_, count) => aliases.find(`account-${count}`, 'tab')).filter(
    Boolean,
  )
  expect(kept).toHaveLength(4_096)
})
