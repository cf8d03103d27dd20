import { expect, test } from 'bun:test'
import { createLog, type LogFields } from '../src/log.ts'

function lineOf(fields: LogFields): string {
  const lines: string[] = []
  createLog(
    (line) => lines.push(line),
    () => 0,
  ).info('event', fields)
  return lines.join('')
}

test('a log line holds listed fields only', () => {
  const fields: LogFields & Record<string, string> = { code: 'x', authorization: 'CANARY', url: 'CANARY' }
  expect(JSON.parse(lineOf(fields))).toEqual({
    time: '1970-01-01T00:00:00.000Z',
    level: 'info',
    source: 'control',
    event: 'event',
    code: 'x',
  })
})

test('(threat T36) text in a log line cannot start another one or paint the screen', () => {
  const line = lineOf({ cause: 'a\r\n{"forged":1}\u001b[31m\u202e' })
  expect(line).not.toMatch(/\p{C}/u)
})
