import { readdirSync } from 'node:fs'
import type { SessionRegistry } from '../sessions/session-registry.ts'

/** Current values, which control sums over all sandboxes. */
export function readValues(registry: SessionRegistry) {
  let attachments = 0
  let pausedSessions = 0
  let logBytes = 0
  for (const { session } of registry.all()) {
    attachments += session.attachments.attachedCount
    if (session.isPaused) pausedSessions += 1
    logBytes += session.log.end - session.log.start
  }
  return {
    sessions: registry.size,
    attachments,
    pausedSessions,
    logBytes,
    openDescriptors: readdirSync('/proc/self/fd').length,
    residentBytes: process.memoryUsage.rss(),
  }
}

/** Totals since the start, whose increase control counts. */
export function readTotals(registry: SessionRegistry, refusals: ReadonlyMap<string, number>) {
  const { started, ended, outputBytes, inputBytes } = registry.counters
  const refused = [...refusals.values()].reduce((sum, count) => sum + count, 0)
  return { sessionsCreated: started, processesEnded: ended, outputBytes, inputBytes, refused }
}

/** Metrics of the sandbox in the Prometheus text format. */
export function renderMetrics(
  registry: SessionRegistry,
  refusals: ReadonlyMap<string, number>,
  version: string,
): string {
  const values = readValues(registry)
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
  add('sessions', 'gauge', 'Sessions.', [['', values.sessions]])
  add('attachments', 'gauge', 'Connected attachments.', [['', values.attachments]])
  add('sessions_paused', 'gauge', 'Sessions whose process is paused by flow control.', [
    ['', values.pausedSessions],
  ])
  add('log_bytes', 'gauge', 'Output stored for resume.', [['', values.logBytes]])
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
  add('open_descriptors', 'gauge', 'Open file descriptors of sandboxd.', [['', values.openDescriptors]])
  add('resident_memory_bytes', 'gauge', 'Resident memory of sandboxd.', [['', values.residentBytes]])
  return `${lines.join('\n')}\n`
}
