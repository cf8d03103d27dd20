import { useStore } from '@sandwire/react'
import { type ReactElement, Suspense, useEffect, useMemo, useState } from 'react'
import { restoreConversation, type RestoreTarget } from '../api/conversations.ts'
import type { View } from '../layout/layout.ts'
import { lazyPart } from '../parts/lazy-part.tsx'
import { useParts } from '../state/context.ts'
import { useIsOwner } from '../state/rights.ts'
import { agentTexts } from '../texts/agents.ts'
import type { AgentChannel } from './agent-channel.ts'
import { AllowedTools } from './allowed-tools.tsx'
import type { ChangesSince } from './conversation-changes.tsx'
import { ConversationComposer } from './conversation-composer.tsx'
import { ConversationFeed } from './conversation-feed.ts'
import type { RestorePoints } from './conversation-frames.ts'
import { ConversationHead, useIsShared } from './conversation-head.tsx'
import { ConversationPublish } from './conversation-publish.tsx'
import { formatComments, type LineComment } from './patch-files.ts'
import { RestoreConfirm } from './restore-files.tsx'
import { TodoList } from './todo-list.tsx'
import type { TranscriptState } from './transcript.ts'
import { excerptOf, type Restorable, TranscriptView } from './transcript-view.tsx'

const { conversation: texts, run: runTexts, diff: diffTexts } = agentTexts

// It loads what compares texts.
const ConversationChanges = lazyPart(
  async () => (await import('./conversation-changes.tsx')).ConversationChanges,
)

/** The messages before which files were saved, oldest first. */
function changesSince({ chunks }: TranscriptState, { versions }: RestorePoints): readonly ChangesSince[] {
  const messages = chunks.flat().flatMap((item) => (item.kind === 'message' ? [item] : []))
  const textOf = new Map(messages.map(({ messageId, text }) => [messageId, excerptOf(text)]))
  return [...versions].map(([message, version]) => ({ message, version, text: textOf.get(message) ?? '' }))
}

function describeUnsaved(problem: string | null): string {
  if (problem === null) return diffTexts.noMessages
  return problem === 'no_store' ? diffTexts.notSaved : diffTexts.notKept(problem)
}

/** A conversation with an agent. */
export function ConversationView({
  view,
}: {
  readonly view: Extract<View, { kind: 'conversation' }>
}): ReactElement {
  const { workbench, agents } = useParts()
  const [feed] = useState(
    () =>
      new ConversationFeed(view.conversation, {
        storage: localStorage,
        onRefused: (message) => workbench.notify('error', message),
        onActivity: () => void agents.refresh(),
      }),
  )
  useEffect(() => feed.open(), [feed])
  const problem = useStore(feed.problem)
  const transcript = useStore(feed.transcript)
  const { isComplete, isOnline, files, conversation, points } = useStore(feed.state)
  const record = useStore(feed.record)
  const isShared = useIsShared(record)
  const [restoring, setRestoring] = useState<RestoreTarget>()
  const [shown, setShown] = useState<'transcript' | 'changes'>('transcript')
  const [comments, setComments] = useState<readonly LineComment[]>([])
  const channel = useMemo<AgentChannel>(
    () => ({
      canAllowAlways: true,
      restore: setRestoring,
      answer: (requestId, answer) => {
        if (!feed.answer(requestId, answer)) workbench.notify('error', texts.notAnswered)
        return Promise.resolve()
      },
    }),
    [feed, workbench],
  )
  // While the agent works, a restore is refused.
  const isOwner = useIsOwner(record?.sandbox ?? '')
  const canRestore = isOwner && isOnline && conversation?.state === 'idle'
  const { lastRestore } = transcript
  const restorable = useMemo<Restorable>(
    () => ({
      messages: new Set(canRestore ? points.versions.keys() : []),
      undo: canRestore && points.canUndo ? lastRestore : undefined,
    }),
    [canRestore, points, lastRestore],
  )
  if (problem !== undefined) return <p className="empty">{`${texts.cannotShow}: ${problem}`}</p>
  const filesText = texts.files[files]
  const since = shown === 'changes' ? changesSince(transcript, points) : []
  const sendComments = (): void => {
    if (feed.send(formatComments(comments), true)) setComments([])
    else workbench.notify('error', texts.tooMany)
  }
  return (
    <div className="run-view">
      <ConversationHead feed={feed} />
      <AllowedTools
        tools={conversation?.allowedTools ?? []}
        forget={(toolName) => void feed.transmit({ type: 'forget_tool', toolName })}
      />
      {!isShared && (
        <div className="run-tabs" role="group" aria-label={texts.views}>
          <button type="button" aria-pressed={shown === 'transcript'} onClick={() => setShown('transcript')}>
            {runTexts.transcript}
          </button>
          <button type="button" aria-pressed={shown === 'changes'} onClick={() => setShown('changes')}>
            {runTexts.diff}
          </button>
        </div>
      )}
      {shown === 'transcript' ? (
        <>
          <TodoList todo={transcript.todo} active={transcript.active} />
          <TranscriptView
            channel={channel}
            transcript={transcript}
            restore={restorable}
            placeholder={isComplete ? texts.empty : agentTexts.loading}
          />
        </>
      ) : (
        <>
          {record !== undefined && record.state !== 'new' && (
            <ConversationPublish record={record} feed={feed} />
          )}
          {record === undefined || since.length === 0 ? (
            <p className="run-diff dim">{describeUnsaved(points.problem)}</p>
          ) : (
            <Suspense fallback={<p className="run-diff dim">{agentTexts.loading}</p>}>
              <ConversationChanges
                sandbox={record.sandbox}
                since={since}
                comments={comments}
                change={setComments}
                send={sendComments}
              />
            </Suspense>
          )}
        </>
      )}
      {filesText !== undefined && <p className="note">{filesText}</p>}
      <ConversationComposer feed={feed} />
      {restoring !== undefined && (
        <RestoreConfirm
          target={restoring}
          onAnswer={(isYes) => {
            setRestoring(undefined)
            if (isYes)
              void workbench.attempt(texts.cannotRestore, () => restoreConversation(feed.id, restoring))
          }}
        />
      )}
    </div>
  )
}
