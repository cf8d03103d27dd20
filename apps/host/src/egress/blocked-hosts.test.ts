import { expect, test } from 'bun:test'
import { BlockedHosts } from './blocked-hosts.ts'

test('counts blocked targets per host and port, latest first', () => {
  const blockedHosts = new BlockedHosts()
  blockedHosts.add('a.com', 443, 'not_listed')
  blockedHosts.add('b.com', 443, 'not_listed')
  blockedHosts.add('a.com', 22, 'port_not_listed')
  blockedHosts.add('a.com', 443, 'not_listed')
  expect(blockedHosts.list()).toEqual([
    { host: 'a.com', port: 443, reason: 'not_listed', count: 2 },
    { host: 'a.com', port: 22, reason: 'port_not_listed', count: 1 },
    { host: 'b.com', port: 443, reason: 'not_listed', count: 1 },
  ])
})

test('limits the number of blocked targets', () => {
  const blockedHosts = new BlockedHosts()
  for (let index = 0; index < 1_000; index++) blockedHosts.add(`${index}.com`, 443, 'not_listed')
  expect(blockedHosts.list()).toHaveLength(100)
  expect(blockedHosts.list()[0]?.host).toBe('999.com')
})
