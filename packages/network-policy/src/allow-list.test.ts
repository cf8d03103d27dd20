import { expect, test } from 'bun:test'
import { isAllowEntry, AllowList } from './allow-list.ts'

test('isAllowEntry accepts valid entries', () => {
  for (const entry of ['good.com', '*.good.com', 'good.com:22', '93.184.216.34', '[2606::1]:443', 'set:npm'])
    expect(isAllowEntry(entry), entry).toBe(true)
})

test('isAllowEntry refuses ambiguous entries (threat T22)', () => {
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

test('AllowList lists its ports other than 80 and 443', () => {
  expect(new AllowList(['a.test', 'b.test:8443', 'c.test:8443', 'd.test:443']).otherPorts).toEqual([8443])
})
