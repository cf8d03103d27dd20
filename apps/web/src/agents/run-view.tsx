import { useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useState } from 'react'
import { deleteRun, type Run, stopRun } from '../api/runs.ts'
import type { View } from '../layout/layout.ts'
import { Confirm } from '../shell/dialog.tsx'
import { IconButton } from '../shell/icon.tsx'
import { openTerminal } from '../shell/open-terminal.ts'
import { useParts } from '../state/context.ts'
import { agentTexts } from '../texts/agents.ts'
import { Composer } from './composer.tsx'
import { NewRunDialog } from './new-run-dialog.tsx'
import { RunDiff } from './run-diff.tsx'
import { RunFeed } from './run-feed.ts'
import type { TranscriptState } from './transcript.ts'
import { TranscriptView } from './transcript-view.tsx'

const { run: texts } = agentTexts

export function describeState({ state, outcome }: Pick<Run, 'state' | 'outcome'>): string {
  return outcome === null ? agentTexts.states[state] : (agentTexts.outcomes[outcome] ?? outcome)
}

function TodoList({ todo, active }: Pick<TranscriptState, 'todo' | 'active'>): ReactElement | null {
  if (todo.length === 0) return null
  const done = todo.filter(({ status }) => status === 'completed').length
  return (
    <details className="todo" open>
      <summary>
        {texts.todo} <span className="dim">{texts.todoDone(done, todo.length)}</span>
        {active !== undefined && <span className="dim"> · {active}</span>}
      </summary>
      <ul>
        {todo.map(({ id, content, status }) => (
          <li key={id} className={status}>
            <input type="checkbox" checked={status === 'completed'} disabled aria-label={content} />
            {content}
          </li>
        ))}
      </ul>
    </details>
  )
}

/** What a dialog asks about. */
type Question = 'abort' | 'remove' | undefined

function RunHead({ run, refresh }: { readonly run: Run; readonly refresh: () => void }): ReactElement {
  const { workbench, runs } = useParts()
  const [question, setQuestion] = useState<Question>()
  const { id, state, usage, limits } = run
  const isEnded = state === 'ended'
  const stop = async (how: 'interrupt' | 'abort'): Promise<void> => {
    await workbench.attempt(texts.cannotStop, () => stopRun(id, how))
    refresh()
  }
  const remove = async (): Promise<void> => {
    await workbench.attempt(texts.cannotRemove, () => deleteRun(id))
    refresh()
    await runs.refresh()
  }
  const notify = async (): Promise<void> => {
    if ((await Notification.requestPermission()) !== 'granted') workbench.notify('info', texts.notifyDenied)
  }
  return (
    <header className="run-head">
      <span className={`run-state ${state}`}>{describeState(run)}</span>
      <span className="dim">
        {texts.spent(agentTexts.spend(usage.costUsd), agentTexts.spend(limits.budgetUsd))}
      </span>
      <span className="run-space" />
      {!isEnded && 'Notification' in globalThis && Notification.permission === 'default' && (
        <button type="button" className="plain-button" onClick={() => void notify()}>
          {texts.notify}
        </button>
      )}
      <IconButton
        icon="terminal"
        label={texts.openTerminal}
        onClick={() => openTerminal(workbench, run.sandbox)}
      />
      {(state === 'running' || state === 'awaiting') && (
        <IconButton icon="stop" label={texts.interrupt} onClick={() => void stop('interrupt')} />
      )}
      {isEnded ? (
        <IconButton icon="trash" label={texts.remove} onClick={() => setQuestion('remove')} />
      ) : (
        <IconButton icon="close" label={texts.abort} onClick={() => setQuestion('abort')} />
      )}
      {question !== undefined && (
        <Confirm
          title={question === 'abort' ? texts.abortQuestion : texts.removeQuestion}
          yes={question === 'abort' ? texts.abort : texts.remove}
          isDangerous
          onAnswer={(isYes) => {
            setQuestion(undefined)
            if (isYes) void (question === 'abort' ? stop('abort') : remove())
          }}
        >
          <p>{question === 'abort' ? texts.abortText : texts.removeText}</p>
        </Confirm>
      )}
    </header>
  )
}

/** A run: what the agent does, what it asks, and its diff. */
export function RunView({ view }: { readonly view: Extract<View, { kind: 'run' }> }): ReactElement {
  const [feed] = useState(() => new RunFeed(view.run))
  useEffect(() => feed.open(), [feed])
  const run = useStore(feed.run)
  const problem = useStore(feed.problem)
  const transcript = useStore(feed.transcript)
  const [shown, setShown] = useState<'transcript' | 'diff'>('transcript')
  const [feedback, setFeedback] = useState<string>()
  if (problem !== undefined) return <p className="empty">{`${texts.cannotShow}: ${problem}`}</p>
  if (run === undefined) return <p className="empty">{agentTexts.loading}</p>
  const fileCount = run.result?.filesChanged.length ?? transcript.files.length
  return (
    <div className="run-view">
      <RunHead run={run} refresh={() => void feed.read()} />
      <div className="run-tabs" role="group" aria-label={texts.transcript}>
        <button type="button" aria-pressed={shown === 'transcript'} onClick={() => setShown('transcript')}>
          {texts.transcript}
        </button>
        <button type="button" aria-pressed={shown === 'diff'} onClick={() => setShown('diff')}>
          {fileCount === 0 ? texts.diff : texts.files(fileCount)}
        </button>
      </div>
      {shown === 'transcript' ? (
        <>
          <TodoList todo={transcript.todo} active={transcript.active} />
          <TranscriptView run={run.id} task={run.task} transcript={transcript} />
          {run.message !== null && run.outcome !== 'aborted' && <p className="note error">{run.message}</p>}
          <Composer
            key={run.id}
            run={run.id}
            isIdle={transcript.agentState === 'idle'}
            isEnded={run.state === 'ended'}
            onFollowUp={() => setFeedback('')}
          />
        </>
      ) : (
        <RunDiff run={run} files={transcript.files} onFeedback={setFeedback} />
      )}
      {feedback !== undefined && (
        <NewRunDialog task={feedback} sandbox={run.sandbox} onClose={() => setFeedback(undefined)} />
      )}
    </div>
  )
}
