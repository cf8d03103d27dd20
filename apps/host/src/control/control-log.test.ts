import { expect, test } from 'bun:test'
import { classify, ControlLog } from './control-log.ts'

const NOW = new Date(0)
const time = NOW.toISOString()

function translate(line: string): unknown {
  return JSON.parse(new ControlLog().translate(line, NOW) ?? 'null')
}

function formatWorkerdLine(message: string): string {
  return JSON.stringify({ timestamp: '1', level: 'error', source: 'x.c++:1', message })
}

test('passes control’s lines unchanged', () => {
  const inner = {
    time: '2026-01-01T00:00:00.000Z',
    level: 'warn',
    source: 'control',
    event: 'request',
    request_id: 'r1',
    status: 502,
  }
  const line = JSON.stringify({ timestamp: 1, level: 'log', message: JSON.stringify(inner) })
  expect(translate(line)).toEqual(inner)
})

test("logs the class of workerd's own errors, and no text that a client sent (threat T2)", () => {
  const expected = { time, level: 'error', source: 'control', event: 'workerd_output', count: 1 }
  const message =
    'Uncaught exception: kj/url.c++:165: failed: invalid URL; url = http://x/?token=CANARY\nstack: 1'
  expect(translate(formatWorkerdLine(message))).toEqual({ ...expected, class: 'Uncaught exception' })
})

test.each(
  [
    'CANARY',
    'swl_CANARY: x',
    'http://CANARY',
    '{"CANARY":1}',
    '{"event":"CANARY"}',
    '["CANARY"]',
    'GET /CANARY: no',
    'abcdefghijklmnopqCANARY: x',
    'a b c d CANARY: x',
    'x [CANARY == 2]: y',
  ].flatMap((text) => [text, formatWorkerdLine(text)]),
)('nothing of %s is kept (threat T2)', (line) => {
  expect(translate(line)).toMatchObject({ event: 'workerd_output', class: 'other' })
})

test('logs the same class with decreasing frequency', () => {
  const log = new ControlLog()
  const counts = Array.from({ length: 100 }, () =>
    log.translate(formatWorkerdLine('failed: x'), NOW),
  ).flatMap((line) => (line === undefined ? [] : [JSON.parse(line).count]))
  expect(counts).toEqual([1, 2, 4, 8, 16, 32, 64])
})

test('limits the number of classes', () => {
  const log = new ControlLog()
  // The number in base 26, so that every class differs.
  const letters = (index: number): string =>
    String.fromCodePoint(97 + (index % 26), 97 + Math.floor(index / 26))
  for (let index = 0; index < 200; index += 1) log.translate(formatWorkerdLine(`${letters(index)}: x`), NOW)
  expect(log.translate(formatWorkerdLine('another kind: x'), NOW) ?? '{"class":"other"}').toContain(
    '"class":"other"',
  )
})

test.each([
  ['failed: a', 'failed'],
  ['Uncaught exception: a', 'Uncaught exception'],
  ['', 'other'],
  [`${'x'.repeat(100_000)}`, 'other'],
])('classifies message %#', (message, found) => {
  expect(classify(formatWorkerdLine(message))).toBe(found)
})
