import { expect, test } from 'bun:test'
import { translateLine } from './control-log.ts'

const NOW = new Date(0)

function translate(line: string): unknown {
  return JSON.parse(translateLine(line, NOW))
}

const time = NOW.toISOString()

test('a line of control keeps its fields', () => {
  const inner = {
    time: '2026-01-01T00:00:00.000Z',
    level: 'warn',
    event: 'request',
    request_id: 'r1',
    status: 502,
  }
  const line = JSON.stringify({ timestamp: 1, level: 'log', message: JSON.stringify(inner) })
  expect(translate(line)).toEqual({ source: 'control', ...inner })
})

test("workerd's own trouble is kept as one line without its addresses", () => {
  const line = JSON.stringify({
    timestamp: '1',
    level: 'error',
    source: 'x.c++:1',
    message: 'failed: a\nstack: bin@1',
  })
  expect(translate(line)).toEqual({
    time,
    level: 'error',
    source: 'control',
    event: 'workerd',
    message: 'failed: a',
  })
})

test.each([
  [
    'url.c++:165: failed: expected ok != nullptr; invalid URL; url = http://u:SECRET@x/',
    'url.c++:165: failed: expected ok != nullptr; invalid URL',
  ],
  ['x.c++:1: failed: expected a == b [SECRET == 2]; size = 3', 'x.c++:1: failed: expected a == b'],
])(
  'the values that workerd adds to its trouble come from strangers, and are cut off (threat T2) %#',
  (message, kept) => {
    expect(translate(JSON.stringify({ level: 'error', message }))).toMatchObject({
      event: 'workerd',
      message: kept,
    })
  },
)

test.each(['plain text', '[1]', 'null', '"x"'])('what is no object is kept as text: %s', (line) => {
  expect(translate(line)).toEqual({ time, level: 'info', source: 'control', event: 'workerd', message: line })
})

test('long text is cut', () => {
  expect(translateLine('x'.repeat(100_000), NOW).length).toBeLessThan(1000)
})
