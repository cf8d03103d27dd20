import { expect, test } from 'bun:test'
import { isAllowEntry, AllowList } from './allow-list.ts'

test('isAllowEntry takes what an allowlist understands', () => {
  for (const entry of ['good.com', '*.good.com', 'good.com:22', '93.184.216.34', '[2606::1]:443', 'set:npm'])
    expect(isAllowEntry(entry), entry).toBe(true)
})

test('isAllowEntry refuses what it would have to guess at (threat T22)', () => {
  for (const entry of [
    '',
    '*',
    'good',
    'set:nope',
    'set:constructor',
    'http://good.com',
    'good.com:0',
    '10.0.0.0/8',
    'a\0.com',
  ])
    expect(isAllowEntry(entry), entry).toBe(false)
})

test('an allowlist knows which ports it has besides those of the web', () => {
  expect(new AllowList(['a.test', 'b.test:8443', 'c.test:8443', 'd.test:443']).otherPorts).toEqual([8443])
})
