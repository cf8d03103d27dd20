import { describe, expect, test } from 'bun:test'
import { MAX_LOG_LINE_CHARS } from './spec.ts'
import { formatLine, formatDaemonLine } from './supervisor-log.ts'

const TIME = new Date(0)
const parse = (line: string): unknown => JSON.parse(line)

describe('(threat T36) a line of a sandbox', () => {
  test('keeps the fields of an object, except its source', () => {
    const line = formatDaemonLine('{"event":"x","source":"supervisor","__proto__":{"a":1}}', TIME)
    expect(line).toBe('{"event":"x","source":"sandboxd","__proto__":{"a":1}}\n')
  })

  test('becomes a message if it is not an object', () => {
    for (const text of ['panic: /x', '[1]', 'null', '"text"', '{"a":'])
      expect(parse(formatDaemonLine(text, TIME))).toEqual({
        time: '1970-01-01T00:00:00.000Z',
        level: 'info',
        event: 'output',
        message: text,
        source: 'sandboxd',
      })
  })

  test('is truncated and marked if too long', () => {
    const long = `{"a":"${'\u{1f600}'.repeat(MAX_LOG_LINE_CHARS)}"}`
    expect(parse(formatDaemonLine(long, TIME))).toMatchObject({ event: 'output', cut: true })
    expect(formatDaemonLine(long, TIME).length).toBeLessThan(MAX_LOG_LINE_CHARS + 200)
  })

  test('contains no control or invisible characters', () => {
    const nasty = '\u001b]0;x\u0007\r\u009b31m\u202eevil\u2028\u200f\u007f\ufeff'
    for (const line of [
      formatDaemonLine(nasty, TIME),
      formatDaemonLine(JSON.stringify({ message: nasty }), TIME),
    ]) {
      expect(line).toMatch(/^[\x20-\x7e]+\n$/)
      expect(parse(line)).toMatchObject({ message: nasty })
    }
  })
})

test('formatLine keeps text of other scripts', () => {
  expect(formatLine({ message: 'héllo 世界' })).toBe('{"message":"héllo 世界"}\n')
})
