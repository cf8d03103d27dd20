import { useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useMemo, useState } from 'react'
import type { RestoreTarget } from '../api/conversations.ts'
import {
  answerRequest,
  deleteRun,
  readRestorePoints,
  restoreRun,
  type Run,
  type RunRestorePoints,
  stopRun,
} from '../api/runs.ts'
import type { View } from '../layout/layout.ts'
import { Confirm } from '../shell/dialog.tsx'
import { IconButton } from '../shell/icon.tsx'
import { useParts } from '../state/context.ts'
import { useIsOwner } from '../state/rights.ts'
import { agentTexts } from '../texts/agents.ts'
import type { AgentChannel } from './agent-channel.ts'
import { Composer } from './composer.tsx'
import { NewAgentDialog } from './new-agent-dialog.tsx'
import { NotifyButton } from './notify-button.tsx'
import { openAgentTerminal } from './open-agent.ts'
import { RestoreConfirm } from './restore-files.tsx'
import { RunDiff } from './run-diff.tsx'
import { RunFeed } from './run-feed.ts'
import { TodoList } from './todo-list.tsx'
import { type Restorable, TranscriptView } from './transcript-view.tsx'

const { run: texts } = agentTexts

export function describeState({ state, outcome }: Pick<Run, 'state' | 'outcome'>): string {
  return outcome === null ? agentTexts.states[state] : (agentTexts.outcomes[outcome] ?? outcome)
}

/** What a dialog asks about. */
type Question = 'abort' | 'remove' | undefined

function RunHead({ run, refresh }: { readonly run: Run; readonly refresh: () => void }): ReactElement {
  const { workbench, agents } = useParts()
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
    await agents.refresh()
  }
  return (
    <header className="run-head">
      <span className={`run-state ${state}`}>{describeState(run)}</span>
      <span className="dim">
        {texts.spent(agentTexts.spend(usage.costUsd), agentTexts.spend(limits.budgetUsd))}
      </span>
      <span className="run-space" />
      {!isEnded && <NotifyButton />}
      <IconButton
        icon="terminal"
        label={texts.openTerminal}
        onClick={() => void openAgentTerminal(workbench, run.sandbox, (agentRun) => agentRun === run.id)}
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

/** Messages of a run before which the files were saved. */
function messagesOf(points: RunRestorePoints | undefined): ReadonlySet<string> {
  return new Set(points?.turns.flatMap(({ message, version }) => (version === null ? [] : [message])))
}

/** The files to which the owner of the sandbox can restore, once the run has ended. */
function useRestorePoints(run: Run | undefined) {
  const [points, setPoints] = useState<RunRestorePoints>()
  const mayRestore = useIsOwner(run?.sandbox ?? '') && run?.state === 'ended'
  const id = run?.id
  useEffect(() => {
    let isCurrent = true
    setPoints(undefined)
    // Without them, nothing can be restored.
    if (mayRestore && id !== undefined)
      readRestorePoints(id).then(
        (found) => isCurrent && setPoints(found),
        () => undefined,
      )
    return () => {
      isCurrent = false
    }
  }, [id, mayRestore])
  return [points, setPoints] as const
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
  const { workbench } = useParts()
  const [restoring, setRestoring] = useState<RestoreTarget>()
  const [points, setPoints] = useRestorePoints(run)
  const restorable = useMemo<Restorable>(() => ({ messages: messagesOf(points), undo: undefined }), [points])
  const channel = useMemo<AgentChannel>(
    () => ({
      canAllowAlways: false,
      restore: setRestoring,
      answer: async (requestId, answer) => {
        const send = (): Promise<void> => answerRequest(view.run, requestId, answer)
        await workbench.attempt(agentTexts.request.cannotAnswer, send)
      },
    }),
    [workbench, view.run],
  )
  if (problem !== undefined) return <p className="empty">{`${texts.cannotShow}: ${problem}`}</p>
  if (run === undefined) return <p className="empty">{agentTexts.loading}</p>
  const restore = async (target: RestoreTarget): Promise<void> => {
    const next = await workbench.attempt(agentTexts.conversation.cannotRestore, () =>
      restoreRun(run.id, target),
    )
    if (next !== undefined) setPoints(next)
  }
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
          <TranscriptView
            channel={channel}
            task={run.task}
            transcript={transcript}
            restore={restorable}
            placeholder={transcript.isComplete ? undefined : texts.waitsForStart}
          />
          {run.message !== null && run.outcome !== 'aborted' && <p className="note error">{run.message}</p>}
          {points?.canUndo === true && (
            <p className="note">
              {texts.filesRestored}{' '}
              <button type="button" className="link" onClick={() => setRestoring({ undo: true })}>
                {texts.undoRestore}
              </button>
            </p>
          )}
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
      {restoring !== undefined && (
        <RestoreConfirm
          target={restoring}
          onAnswer={(isYes) => {
            setRestoring(undefined)
            if (isYes) void restore(restoring)
          }}
        />
      )}
      {feedback !== undefined && (
        <NewAgentDialog
          kind="run"
          task={feedback}
          sandbox={run.sandbox}
          onClose={() => setFeedback(undefined)}
        />
      )}
    </div>
  )
}
