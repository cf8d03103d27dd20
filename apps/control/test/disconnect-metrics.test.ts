import { expect, test } from 'bun:test'
import { Metrics } from '../src/metrics.ts'
import { DisconnectMetrics } from '../src/sandbox/disconnect-metrics.ts'

const RUN = { epoch: 'e1', startedMs: 10 }

function open(sinceMs = 0) {
  const metrics = new Metrics()
  const disconnects = new DisconnectMetrics(metrics, sinceMs)
  const lines = (): readonly string[] =>
    metrics
      .render()
      .split('\n')
      .filter((line) => line.startsWith('sandwire_websocket_disconnects_total{'))
      .map((line) => line.slice('sandwire_websocket_disconnects_total'.length))
  return { disconnects, lines }
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
