import { useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useMemo, useState } from 'react'
import { deleteConversation } from '../api/conversations.ts'
import type { View } from '../layout/layout.ts'
import { Confirm } from '../shell/dialog.tsx'
import { IconButton } from '../shell/icon.tsx'
import { openTerminal } from '../shell/open-terminal.ts'
import { useParts } from '../state/context.ts'
import { agentTexts } from '../texts/agents.ts'
import type { AgentChannel } from './agent-channel.ts'
import { AllowedTools } from './allowed-tools.tsx'
import { ConversationComposer } from './conversation-composer.tsx'
import { ConversationFeed } from './conversation-feed.ts'
import { NotifyButton } from './notify-button.tsx'
import { TodoList } from './todo-list.tsx'
import { TranscriptView } from './transcript-view.tsx'

const { conversation: texts } = agentTexts

function ConversationHead({ feed }: { readonly feed: ConversationFeed }): ReactElement {
  const { workbench, agents } = useParts()
  const record = useStore(feed.record)
  const { conversation, isOnline } = useStore(feed.state)
  const [isAsking, setAsking] = useState(false)
  const state = conversation?.state ?? record?.state ?? 'idle'
  const isWorking = state === 'working' || state === 'starting' || state === 'awaiting'
  const remove = async (id: string): Promise<void> => {
    await workbench.attempt(texts.cannotRemove, () => deleteConversation(id))
    await feed.read()
    await agents.refresh()
  }
  return (
    <header className="run-head">
      <span className={`run-state ${state}`} role="status">
        {isOnline || conversation === undefined ? texts.states[state] : texts.offline}
      </span>
      {record !== undefined && (
        <span className="dim">
          {agentTexts.run.spent(agentTexts.spend(record.usage.costUsd), agentTexts.spend(record.budgetUsd))}
        </span>
      )}
      <span className="run-space" />
      <NotifyButton />
      {record !== undefined && (
        <IconButton
          icon="terminal"
          label={agentTexts.run.openTerminal}
          onClick={() => openTerminal(workbench, record.sandbox)}
        />
      )}
      {isWorking && (
        <IconButton
          icon="stop"
          label={texts.stop}
          isDisabled={!isOnline}
          onClick={() => feed.transmit({ type: 'interrupt' })}
        />
      )}
      {record !== undefined && (
        <IconButton icon="trash" label={texts.remove} onClick={() => setAsking(true)} />
      )}
      {isAsking && record !== undefined && (
        <Confirm
          title={texts.removeQuestion}
          yes={texts.remove}
          isDangerous
          onAnswer={(isYes) => {
            setAsking(false)
            if (isYes) void remove(record.id)
          }}
        >
          <p>{texts.removeText}</p>
        </Confirm>
      )}
    </header>
  )
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
  const { isComplete, files, conversation } = useStore(feed.state)
  const channel = useMemo<AgentChannel>(
    () => ({
      canAllowAlways: true,
      answer: (requestId, answer) => {
        if (!feed.answer(requestId, answer)) workbench.notify('error', texts.notAnswered)
        return Promise.resolve()
      },
    }),
    [feed, workbench],
  )
  if (problem !== undefined) return <p className="empty">{`${texts.cannotShow}: ${problem}`}</p>
  const filesText = texts.files[files]
  return (
    <div className="run-view">
      <ConversationHead feed={feed} />
      <AllowedTools
        tools={conversation?.allowedTools ?? []}
        forget={(toolName) => void feed.transmit({ type: 'forget_tool', toolName })}
      />
      <TodoList todo={transcript.todo} active={transcript.active} />
      <TranscriptView
        channel={channel}
        transcript={transcript}
        placeholder={isComplete ? texts.empty : agentTexts.loading}
      />
      {filesText !== undefined && <p className="note">{filesText}</p>}
      <ConversationComposer feed={feed} />
    </div>
  )
}
