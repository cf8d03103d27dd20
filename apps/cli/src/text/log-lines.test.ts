import { expect, test } from 'bun:test'
import { unseenLines, formatLogLine } from './log-lines.ts'

test('unseenLines finds lines that were added to the end of a log', () => {
  expect(unseenLines([], ['a', 'b'])).toEqual(['a', 'b'])
  expect(unseenLines(['a', 'b'], ['a', 'b'])).toEqual([])
  expect(unseenLines(['a', 'b'], ['a', 'b', 'c'])).toEqual(['c'])
  expect(unseenLines(['a', 'b', 'c'], ['b', 'c', 'd'])).toEqual(['d'])
  expect(unseenLines(['a', 'b', 'c'], ['c', 'd', 'e'])).toEqual(['d', 'e'])
  expect(unseenLines(['a', 'a'], ['a', 'a', 'a'])).toEqual(['a'])
  expect(unseenLines(['a', 'b'], ['x', 'y'])).toEqual(['x', 'y'])
  expect(unseenLines(['a'], [])).toEqual([])
})

test('formatLogLine puts time, level and event first', () => {
  const line = JSON.stringify({
    host: 'evil.com',
    level: 'warn',
    port: 443,
    event: 'egress_blocked',
    time: 'T',
  })
  expect(formatLogLine(line)).toBe('T warn egress_blocked host=evil.com port=443')
})

test('formatLogLine prints only printable characters (threat T24)', () => {
  for (const line of [
    'not json \x1b[2J',
    '"\\u001b"',
    'null',
    '[1]',
    JSON.stringify({ event: '\x1b]0;x\x07', a: { b: '\u202e' } }),
  ])
    expect(formatLogLine(line)).toMatch(/^[^\p{C}]*$/u)
})
