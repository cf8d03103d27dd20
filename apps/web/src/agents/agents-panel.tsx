import { useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useState } from 'react'
import type { Conversation } from '../api/conversations.ts'
import type { Run } from '../api/runs.ts'
import { displayTitle } from '../files/display-name.ts'
import { formatRelativeTime } from '../shell/format-time.ts'
import { IconButton } from '../shell/icon.tsx'
import { useParts } from '../state/context.ts'
import { agentTexts } from '../texts/agents.ts'
import { type AgentItem, atMsOf, idOf } from './agent-list.ts'
import { NewAgentDialog } from './new-agent-dialog.tsx'
import { openItem, openTui } from './open-agent.ts'
import { describeState } from './run-view.tsx'

const RUN_DOTS: Readonly<Record<Run['state'], string>> = {
  queued: '',
  preparing: 'creating',
  running: 'running',
  awaiting: 'creating',
  stopping: 'stopping',
  collecting: 'stopping',
  ended: '',
}
const CONVERSATION_DOTS: Readonly<Record<Conversation['state'], string>> = {
  new: '',
  idle: '',
  starting: 'creating',
  working: 'running',
  awaiting: 'creating',
  restoring: 'creating',
}

interface Shown {
  readonly title: string
  readonly state: string
  readonly dot: string
  readonly costUsd: number
}

function describe(item: AgentItem): Shown {
  if (item.kind === 'conversation') {
    const { title, state, usage } = item.conversation
    return {
      title: title === '' ? agentTexts.conversation.untitled : title,
      state: agentTexts.conversation.states[state],
      dot: CONVERSATION_DOTS[state],
      costUsd: usage.costUsd,
    }
  }
  const { task, state, outcome, usage } = item.run
  const hasFailed = outcome !== null && outcome !== 'completed' && outcome !== 'aborted'
  return {
    title: task,
    state: agentTexts.runState(describeState(item.run)),
    dot: hasFailed ? 'failed' : RUN_DOTS[state],
    costUsd: usage.costUsd,
  }
}

function AgentRow({ item }: { readonly item: AgentItem }): ReactElement {
  const { workbench } = useParts()
  const { title, state, dot, costUsd } = describe(item)
  const notes = [state, agentTexts.spend(costUsd), formatRelativeTime(atMsOf(item), Date.now())]
  return (
    <li className="run-row">
      <div className="row">
        <button type="button" className="row-main" onClick={() => openItem(workbench, item)}>
          <span className={`dot ${dot}`} aria-hidden="true" />
          <span className="row-text">
            <span className="row-name">{displayTitle(title)}</span>
            <small>{notes.join(' · ')}</small>
          </span>
        </button>
      </div>
    </li>
  )
}

/** Conversations with coding agents, and their runs. */
export function AgentsPanel(): ReactElement {
  const { agents, workbench, terminals } = useParts()
  const all = useStore(agents.all)
  const [creating, setCreating] = useState<'conversation' | 'run'>()
  useEffect(() => void agents.refresh(), [agents])
  return (
    <>
      <header className="panel-head">
        <h2>{agentTexts.title}</h2>
        <IconButton
          icon="plus"
          label={agentTexts.startConversation}
          onClick={() => setCreating('conversation')}
        />
        <IconButton icon="play" label={agentTexts.start} onClick={() => setCreating('run')} />
        <IconButton
          icon="terminal"
          label={agentTexts.openClaude}
          onClick={() => openTui({ workbench, terminals }, 'claude')}
        />
        <IconButton icon="refresh" label={agentTexts.refresh} onClick={() => void agents.refresh()} />
      </header>
      {all.kind === 'loading' && <p className="empty">{agentTexts.loading}</p>}
      {all.kind === 'failed' && <p className="problem">{`${agentTexts.cannotList}: ${all.message}`}</p>}
      {all.kind === 'ready' && all.value.length === 0 && (
        <div className="empty">
          <p>{agentTexts.none}</p>
          <button type="button" className="primary" onClick={() => setCreating('conversation')}>
            {agentTexts.startConversation}
          </button>
          <button type="button" onClick={() => setCreating('run')}>
            {agentTexts.start}
          </button>
        </div>
      )}
      {all.kind === 'ready' && all.value.length > 0 && (
        <ul className="rows" aria-label={agentTexts.list}>
          {all.value.map((item) => (
            <AgentRow key={idOf(item)} item={item} />
          ))}
        </ul>
      )}
      {creating !== undefined && <NewAgentDialog kind={creating} onClose={() => setCreating(undefined)} />}
    </>
  )
}
