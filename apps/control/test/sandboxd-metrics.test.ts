import { expect, test } from 'bun:test'
import { Metrics } from '../src/metrics.ts'
import { SandboxdMetrics } from '../src/sandbox/sandboxd-metrics.ts'

const RUN = { epoch: 'e1', startedMs: 10 }

function open(sinceMs = 0) {
  const metrics = new Metrics()
  const clock = { nowMs: sinceMs }
  const disconnects = new SandboxdMetrics(metrics, { nowMs: () => clock.nowMs, pollMs: 1_000 })
  const lines = (): readonly string[] =>
    metrics
      .render()
      .split('\n')
      .filter((line) => line.startsWith('sandwire_websocket_disconnects_total{'))
      .map((line) => line.slice('sandwire_websocket_disconnects_total'.length))
  return { disconnects, lines, metrics, clock }
}

test('counts the increase of the totals of each start of a sandbox', () => {
  const { disconnects, lines } = open()
  disconnects.receive('s1', RUN, { disconnects: { 1000: 2, 1006: 1 } })
  disconnects.receive('s1', RUN, { disconnects: { 1000: 5, 1006: 1, 4435: 1 } })
  disconnects.receive('s1', { epoch: 'e2', startedMs: 20 }, { disconnects: { 1000: 1 } })
  disconnects.receive('s2', RUN, { disconnects: { 1006: 4 } })
  expect(lines()).toEqual(['{code="1000"} 6', '{code="1006"} 5', '{code="4435"} 1'])
})

test('does not count what was closed before control started', () => {
  const { disconnects, lines } = open(11)
  disconnects.receive('s1', RUN, { disconnects: { 1000: 2 } })
  expect(lines()).toEqual([])
  disconnects.receive('s1', RUN, { disconnects: { 1000: 3 } })
  expect(lines()).toEqual(['{code="1000"} 1'])
})

test('bounds what a hostile sandbox can add', () => {
  const { disconnects, lines } = open()
  const many = Object.fromEntries(Array.from({ length: 4_000 }, (_, index) => [`5${index}`, 1]))
  disconnects.receive('s1', RUN, { disconnects: many })
  disconnects.receive('s2', RUN, { disconnects: { 1000: Number.MAX_SAFE_INTEGER } })
  for (const bad of [
    null,
    {},
    { disconnects: [] },
    { disconnects: { 1000: -1 } },
    { disconnects: { 1000: 'x' } },
  ])
    disconnects.receive('s3', RUN, bad)
  expect(lines()).toEqual(['{code="other"} 100', '{code="1000"} 1000000'])
})

test('sums current values over running sandboxes, and counts the increase of totals', () => {
  const { disconnects: received, metrics, clock } = open()
  const valueOf = (name: string): string | undefined => {
    received.collect()
    return new RegExp(`^sandwire_sandboxd_${name} (.*)$`, 'm').exec(metrics.render())?.[1]
  }
  const report = (sandbox: string, epoch: string, sessions: number, outputBytes: number): void =>
    received.receive(
      sandbox,
      { epoch, startedMs: 1 },
      { disconnects: {}, values: { sessions, residentBytes: 1_000 }, totals: { outputBytes } },
    )
  report('s1', 'a', 3, 100)
  report('s2', 'b', 4, 50)
  expect(['polled', 'sessions', 'resident_memory_bytes', 'output_bytes_total'].map(valueOf)).toEqual([
    '2',
    '7',
    '2000',
    '150',
  ])
  report('s1', 'a', 1, 130)
  // Started again: totals begin at zero.
  report('s2', 'c', 2, 5)
  expect(['sessions', 'output_bytes_total'].map(valueOf)).toEqual(['3', '185'])
  clock.nowMs += 2_000
  report('s1', 'a', 1, 130)
  clock.nowMs += 2_000
  // The second one is no longer polled.
  expect(['polled', 'sessions', 'output_bytes_total'].map(valueOf)).toEqual(['1', '1', '185'])
})

test('bounds the values of a hostile sandbox, and accepts the reports of an older sandboxd', () => {
  const { disconnects: received, metrics } = open()
  const huge = Number.MAX_SAFE_INTEGER
  received.receive('s1', RUN, { disconnects: {}, values: { sessions: huge }, totals: { inputBytes: huge } })
  received.receive('s2', RUN, { disconnects: {}, values: { sessions: -1 } })
  received.receive('s3', RUN, { disconnects: {}, values: { surprise: 1 } })
  received.receive('s4', RUN, { disconnects: {} })
  received.collect()
  expect(metrics.render()).toContain('sandwire_sandboxd_sessions 1000000\n')
  expect(metrics.render()).toContain(`sandwire_sandboxd_input_bytes_total ${2 ** 40}\n`)
  expect(metrics.render()).toContain('sandwire_sandboxd_polled 3\n')
})
