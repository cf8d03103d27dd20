import { useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useState } from 'react'
import type { Run } from '../api/runs.ts'
import { displayTitle } from '../files/display-name.ts'
import { formatRelativeTime } from '../shell/format-time.ts'
import { IconButton } from '../shell/icon.tsx'
import { useParts } from '../state/context.ts'
import { agentTexts } from '../texts/agents.ts'
import { NewRunDialog } from './new-run-dialog.tsx'
import { openRun } from './open-run.ts'
import { describeState } from './run-view.tsx'

const DOTS: Readonly<Record<Run['state'], string>> = {
  queued: '',
  preparing: 'creating',
  running: 'running',
  awaiting: 'creating',
  stopping: 'stopping',
  collecting: 'stopping',
  ended: '',
}

function RunRow({ run }: { readonly run: Run }): ReactElement {
  const { workbench } = useParts()
  const { task, state, outcome, createdMs, usage } = run
  const notes = [
    describeState(run),
    agentTexts.spend(usage.costUsd),
    formatRelativeTime(createdMs, Date.now()),
  ]
  const hasFailed = outcome !== null && outcome !== 'completed' && outcome !== 'aborted'
  return (
    <li className="run-row">
      <div className="row">
        <button type="button" className="row-main" onClick={() => openRun(workbench, run)}>
          <span className={`dot ${hasFailed ? 'failed' : DOTS[state]}`} aria-hidden="true" />
          <span className="row-text">
            <span className="row-name">{displayTitle(task)}</span>
            <small>{notes.join(' · ')}</small>
          </span>
        </button>
      </div>
    </li>
  )
}

/** Runs of coding agents, newest first. */
export function RunsPanel(): ReactElement {
  const { runs } = useParts()
  const all = useStore(runs.all)
  const [isCreating, setCreating] = useState(false)
  useEffect(() => void runs.refresh(), [runs])
  return (
    <>
      <header className="panel-head">
        <h2>{agentTexts.title}</h2>
        <IconButton icon="plus" label={agentTexts.start} onClick={() => setCreating(true)} />
        <IconButton icon="refresh" label={agentTexts.refresh} onClick={() => void runs.refresh()} />
      </header>
      {all.kind === 'loading' && <p className="empty">{agentTexts.loading}</p>}
      {all.kind === 'failed' && <p className="problem">{`${agentTexts.cannotList}: ${all.message}`}</p>}
      {all.kind === 'ready' && all.value.length === 0 && (
        <div className="empty">
          <p>{agentTexts.none}</p>
          <button type="button" className="primary" onClick={() => setCreating(true)}>
            {agentTexts.start}
          </button>
        </div>
      )}
      {all.kind === 'ready' && all.value.length > 0 && (
        <ul className="rows" aria-label={agentTexts.list}>
          {all.value.map((run) => (
            <RunRow key={run.id} run={run} />
          ))}
        </ul>
      )}
      {isCreating && <NewRunDialog onClose={() => setCreating(false)} />}
    </>
  )
}
