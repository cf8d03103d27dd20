import { expect, test } from 'bun:test'
import { createLog } from './log.ts'

test('createLog escapes control characters, so that a line stays one JSON object', () => {
  const lines: string[] = []
  const log = createLog(
    (line) => lines.push(line),
    () => new Date(0),
  )
  log.warn('refused', { code: 'x\n\u001b[31m"y"' })
  expect(lines).toHaveLength(1)
  expect(lines[0]?.trimEnd()).not.toContain('\n')
  expect(lines[0]).not.toContain('\u001b')
  expect(JSON.parse(lines[0] ?? '')).toEqual({
    time: '1970-01-01T00:00:00.000Z',
    level: 'warn',
    event: 'refused',
    code: 'x\n\u001b[31m"y"',
  })
})

test('createLog drops fields that are not listed or not plain values', () => {
  const lines: string[] = []
  const log = createLog(
    (line) => lines.push(line),
    () => new Date(0),
  )
  const fields: object = {
    request_id: 'r1',
    authorization: 'Bearer canary',
    url: '/attach?canary',
    cause: new Error('canary'),
    code: { nested: 'canary' },
    message: 'm'.repeat(10_000),
    time: 'canary',
    level: 'canary',
    event: 'canary',
  }
  log.info('refused', fields)
  expect(lines[0]).not.toContain('canary')
  expect(JSON.parse(lines[0] ?? '')).toEqual({
    time: '1970-01-01T00:00:00.000Z',
    level: 'info',
    event: 'refused',
    request_id: 'r1',
    message: 'm'.repeat(500),
  })
})
