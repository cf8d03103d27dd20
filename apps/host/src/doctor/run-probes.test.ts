import { expect, test } from 'bun:test'
import { parseReport, report } from './probe-protocol.ts'
import { complete, PROBES } from './run-probes.ts'

test('counts a probe without a report as failed', () => {
  const reports = complete([report('mount', 'ok', 'cannot mount a file system')], 'exit_1')
  expect(reports).toHaveLength(PROBES.length)
  expect(reports.find(({ name }) => name === 'mount')?.verdict).toBe('ok')
  expect(reports.filter(({ verdict }) => verdict === 'failed')).toHaveLength(PROBES.length - 1)
})

test('reports a weak disk limit when the sandbox is stopped for it', () => {
  const reports = complete([], 'disk_full')
  expect(reports.find(({ name }) => name === 'disk-limit')?.verdict).toBe('weak')
  expect(reports.find(({ name }) => name === 'mount')?.verdict).toBe('failed')
})

test('parses only valid reports', () => {
  expect(parseReport('{"name":"mount","verdict":"ok","line":"cannot"}')).toEqual(
    report('mount', 'ok', 'cannot'),
  )
  expect(parseReport('{"name":"mount","verdict":"fine","line":"cannot"}')).toBeUndefined()
  expect(parseReport('hello')).toBeUndefined()
})
