import { expect, test } from 'bun:test'
import { OutputLog } from '@sandwire/protocol'
import { COMPAT_HISTORY_BYTES } from '@sandwire/internal-api'
import { historyBefore, PtyEndpoint } from './pty-endpoint.ts'

const text = (bytes: Uint8Array): string => new TextDecoder('utf-8', { fatal: true }).decode(bytes)

function logOf(...parts: readonly string[]): OutputLog {
  const log = new OutputLog(2 * 1024 * 1024)
  for (const part of parts) log.append('stdout', new TextEncoder().encode(part))
  return log
}

test('history is the whole output up to the offset, while that is short', () => {
  expect(text(historyBefore(logOf('a\n', 'b\n', 'later'), 4))).toBe('a\nb\n')
  expect(historyBefore(logOf(), 0)).toHaveLength(0)
})

test('history is bounded, and starts with a line', () => {
  const log = logOf(...Array.from({ length: 3_000 }, () => `\u001b[31m${'x'.repeat(94)}\n`))
  const history = historyBefore(log, log.end)
  expect(history.byteLength).toBeGreaterThanOrEqual(COMPAT_HISTORY_BYTES - 100)
  expect(history.byteLength).toBeLessThanOrEqual(COMPAT_HISTORY_BYTES)
  expect(text(history)).toStartWith('\u001b[31mx')
})

test('history of one endless line starts with a whole character', () => {
  for (const shift of [0, 1, 2, 3]) {
    const log = logOf('x'.repeat(shift), '😀'.repeat(60_000))
    const history = historyBefore(log, log.end)
    expect(text(history)).toStartWith('😀')
    expect(history.byteLength).toBeGreaterThan(COMPAT_HISTORY_BYTES - 4)
  }
})

test('history of a trimmed log starts with a line', () => {
  const log = logOf('half a line', 'of it\nwhole\n')
  const small = new OutputLog(10)
  const all = log.read(0, log.end)?.bytes ?? new Uint8Array(0)
  small.append('stdout', all)
  small.trim(small.end)
  expect(text(historyBefore(small, small.end))).toBe('whole\n')
})

test('the query may set the keep time and the interval of pings', () => {
  const endpoint = new PtyEndpoint({ mintIdentity: () => '', now: () => 0 })
  const parse = (query: string) => endpoint.parse(new URLSearchParams(query))
  expect(parse('keep=600&ping=10')).toMatchObject({
    pingMs: 10_000,
    parameters: { kind: 'create', create: { mode: 'pty', keepSeconds: 600 } },
  })
  expect(parse('session=s')).not.toHaveProperty('pingMs')
  for (const refused of ['ping=0', 'ping=1.5', 'ping=99999', 'ping=5&ping=6', 'ended=2'])
    expect(() => parse(refused)).toThrow('Cannot use parameter')
})
