import { expect, test } from 'bun:test'
import { BlockedLedger } from './blocked-hosts.ts'

test('refusals are counted per host and port, the latest first', () => {
  const ledger = new BlockedLedger()
  ledger.add('a.com', 443, 'not_listed')
  ledger.add('b.com', 443, 'not_listed')
  ledger.add('a.com', 22, 'port_not_listed')
  ledger.add('a.com', 443, 'not_listed')
  expect(ledger.list()).toEqual([
    { host: 'a.com', port: 443, reason: 'not_listed', count: 2 },
    { host: 'a.com', port: 22, reason: 'port_not_listed', count: 1 },
    { host: 'b.com', port: 443, reason: 'not_listed', count: 1 },
  ])
})

test('the ledger is bounded', () => {
  const ledger = new BlockedLedger()
  for (let index = 0; index < 1_000; index++) ledger.add(`${index}.com`, 443, 'not_listed')
  expect(ledger.list()).toHaveLength(100)
  expect(ledger.list()[0]?.host).toBe('999.com')
})
