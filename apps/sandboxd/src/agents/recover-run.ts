import type { NumberedEvent, Outcome, Usage } from '@sandwire/agent'
import { collectDiff, type CollectDependencies } from './agent-run.ts'
import { NO_USAGE, type RunRecord } from './run-record.ts'

const MESSAGE = 'The sandbox ended during the run'

/** What the journal says about a run whose sandboxd died. */
function readTotals(record: RunRecord): {
  readonly usage: Usage
  readonly agentSessionId: string | null
  readonly model: string | null
  readonly summary: string
  readonly announcedFiles: ReadonlyMap<string, 'create' | 'modify'>
} {
  const announcedFiles = new Map<string, 'create' | 'modify'>()
  let usage = NO_USAGE
  let agentSessionId: string | null = null
  let model: string | null = null
  let summary = ''
  for (let after = 0; after < record.events.lastSeq;) {
    const entries = record.events.read(after, 1_000, 1024 * 1024)
    for (const { json, seq } of entries) {
      after = seq
      const { event } = JSON.parse(json) as NumberedEvent
      if (event.type === 'usage') {
        const { type: _, ...rest } = event
        usage = rest
      }
      if (event.type === 'text' && event.thinking === undefined && event.subagent === undefined)
        summary = event.text
      if (event.type === 'file_change' && (event.action === 'create' || event.action === 'modify'))
        announcedFiles.set(event.path, announcedFiles.get(event.path) === 'create' ? 'create' : event.action)
      if (event.type === 'status' && event.status === 'session') ({ agentSessionId, model } = event)
    }
    if (entries.length === 0) break
  }
  return { usage, agentSessionId, model, summary, announcedFiles }
}

/** Ends a run that an earlier sandboxd left: no process of it is alive, its files are. */
export async function recoverRun(record: RunRecord, deps: CollectDependencies): Promise<void> {
  const { summary, ...totals } = readTotals(record)
  const outcome: Outcome = {
    status: 'crashed',
    message: MESSAGE,
    summary,
    structured: null,
    exitCode: null,
    signal: null,
  }
  record.report({ type: 'status', status: 'stopping', reason: 'crashed', message: MESSAGE })
  record.reportState('collecting')
  record.finish(outcome, totals, await collectDiff(record, deps))
}
