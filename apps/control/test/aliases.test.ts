import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { Aliases, ALIASES_MIGRATIONS } from '../src/sandbox/aliases.ts'
import { sqlOf } from './support/bun-sql.ts'

function open(): Aliases {
  const sql = sqlOf(new Database(':memory:'))
  for (const statement of ALIASES_MIGRATIONS) sql.exec(statement)
  return new Aliases((query, ...bindings) => sql.exec(query, ...bindings).toArray())
}

test('a name leads to the session it was given last, in its own account alone (threat T4)', () => {
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

test('an account has a bounded number of names, and pushes out its own', () => {
  const aliases = open()
  aliases.put('bob', 'tab', 's')
  for (let count = 0; count < 500; count += 1) aliases.put('ada', `tab-${count}`, 's')
  const kept = Array.from({ length: 500 }, (_, count) => aliases.find('ada', `tab-${count}`)).filter(Boolean)
  expect(kept).toHaveLength(128)
  expect(aliases.find('ada', 'tab-499')).toBe('s')
  expect(aliases.find('ada', 'tab-371')).toBeUndefined()
  expect(aliases.find('bob', 'tab')).toBe('s')
})

test('all accounts together have a bounded number as well', () => {
  const aliases = open()
  for (let count = 0; count < 5_000; count += 1) aliases.put(`account-${count}`, 'tab', 's')
  const kept = Array.from({ length: 5_000 }, (_, count) => aliases.find(`account-${count}`, 'tab')).filter(
    Boolean,
  )
  expect(kept).toHaveLength(4_096)
})
