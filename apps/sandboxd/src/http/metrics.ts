import { readdirSync } from 'node:fs'
import type { SessionRegistry } from '../sessions/session-registry.ts'

/** Metrics of the sandbox in the Prometheus text format. */
export function renderMetrics(
  registry: SessionRegistry,
  refusals: ReadonlyMap<string, number>,
  version: string,
): string {
  let attachments = 0
  let paused = 0
  let logBytes = 0
  for (const { session } of registry.all()) {
    attachments += session.attachments.attachedCount
    if (session.isPaused) paused += 1
    logBytes += session.log.end - session.log.start
  }
  const { counters } = registry
  const lines: string[] = []
  const add = (
    name: string,
    type: 'gauge' | 'counter',
    help: string,
    rows: readonly (readonly [string, number])[],
  ): void => {
    lines.push(`# HELP sandwire_${name} ${help}`, `# TYPE sandwire_${name} ${type}`)
    for (const [labels, value] of rows) lines.push(`sandwire_${name}${labels} ${value}`)
  }
  add('build_info', 'gauge', 'Version of sandboxd.', [[`{version="${version}"}`, 1]])
  add('sessions', 'gauge', 'Sessions.', [['', registry.size]])
  add('attachments', 'gauge', 'Connected attachments.', [['', attachments]])
  add('sessions_paused', 'gauge', 'Sessions whose process is paused by flow control.', [['', paused]])
  add('log_bytes', 'gauge', 'Output stored for resume.', [['', logBytes]])
  add('sessions_created_total', 'counter', 'Sessions created.', [['', counters.started]])
  add('processes_ended_total', 'counter', 'Processes that exited.', [['', counters.ended]])
  add(
    'disconnects_total',
    'counter',
    'Closed connections, by WebSocket close code.',
    [...counters.disconnects].map(([code, count]) => [`{code="${code}"}`, count]),
  )
  add('output_bytes_total', 'counter', 'Bytes read from processes.', [['', counters.outputBytes]])
  add('input_bytes_total', 'counter', 'Bytes received for processes.', [['', counters.inputBytes]])
  add(
    'refused_total',
    'counter',
    'Requests and connections refused.',
    [...refusals].map(([code, count]) => [`{code="${code}"}`, count]),
  )
  add('open_descriptors', 'gauge', 'Open file descriptors of sandboxd.', [
    ['', readdirSync('/proc/self/fd').length],
  ])
  add('resident_memory_bytes', 'gauge', 'Resident memory of sandboxd.', [['', process.memoryUsage.rss()]])
  return `${lines.join('\n')}\n`
}
