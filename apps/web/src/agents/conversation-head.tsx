import { useStore } from '@sandwire/react'
import { type ReactElement, useState } from 'react'
import { type Conversation, deleteConversation } from '../api/conversations.ts'
import { ShareDialog } from '../sharing/share-dialog.tsx'
import { Confirm } from '../shell/dialog.tsx'
import { IconButton } from '../shell/icon.tsx'
import { useParts } from '../state/context.ts'
import { useIsOwner } from '../state/rights.ts'
import { agentTexts } from '../texts/agents.ts'
import type { ConversationFeed } from './conversation-feed.ts'
import { NotifyButton } from './notify-button.tsx'
import { hasTui, openAgentTerminal, openTui } from './open-agent.ts'

const { conversation: texts } = agentTexts

/** True when the user has the conversation only, and not its sandbox. */
export function useIsShared(record: Conversation | undefined): boolean {
  const { workbench } = useParts()
  const sandboxes = useStore(workbench.sandboxes)
  // The sandbox of a new conversation does not exist yet.
  if (record === undefined || record.state === 'new' || sandboxes.kind !== 'ready') return false
  return !sandboxes.value.some(({ id }) => id === record.sandbox)
}

function Status({ feed }: { readonly feed: ConversationFeed }): ReactElement {
  const record = useStore(feed.record)
  const { conversation, isOnline } = useStore(feed.state)
  const state = conversation?.state ?? record?.state ?? 'idle'
  const text = conversation?.isBlocked === true ? texts.blocked : texts.states[state]
  return (
    <span className={`run-state ${state}`} role="status">
      {isOnline || conversation === undefined ? text : texts.offline}
    </span>
  )
}

function StopButton({ feed }: { readonly feed: ConversationFeed }): ReactElement | null {
  const { conversation, isOnline } = useStore(feed.state)
  if (!['working', 'starting', 'awaiting'].includes(conversation?.state ?? 'idle')) return null
  return (
    <IconButton
      icon="stop"
      label={texts.stop}
      isDisabled={!isOnline}
      onClick={() => feed.transmit({ type: 'interrupt' })}
    />
  )
}

/** Continues the conversation in the agent's own interface, once it has begun. */
function TuiButton({
  record: { agent, agentSessionId, sandbox },
  feed,
}: {
  readonly record: Conversation
  readonly feed: ConversationFeed
}): ReactElement | null {
  const { workbench, terminals } = useParts()
  const { conversation } = useStore(feed.state)
  if (agentSessionId === null || !hasTui(agent)) return null
  return (
    <IconButton
      icon="agent"
      label={texts.openTui}
      isDisabled={conversation?.state !== 'idle'}
      onClick={() => openTui({ workbench, terminals }, agent, { sandbox, agentSessionId })}
    />
  )
}

function ShareButton({ record }: { readonly record: Conversation }): ReactElement {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <IconButton icon="share" label={texts.share} onClick={() => setOpen(true)} />
      {isOpen && (
        <ShareDialog
          title={texts.shareTitle}
          roles={texts.roles}
          sandbox={record.sandbox}
          session={record.id}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  )
}

function RemoveButton({
  record,
  feed,
}: {
  readonly record: Conversation
  readonly feed: ConversationFeed
}): ReactElement {
  const { workbench, agents } = useParts()
  const [isAsking, setAsking] = useState(false)
  const remove = async (): Promise<void> => {
    await workbench.attempt(texts.cannotRemove, () => deleteConversation(record.id))
    await feed.read()
    await agents.refresh()
  }
  return (
    <>
      <IconButton icon="trash" label={texts.remove} onClick={() => setAsking(true)} />
      {isAsking && (
        <Confirm
          title={texts.removeQuestion}
          yes={texts.remove}
          isDangerous
          onAnswer={(isYes) => {
            setAsking(false)
            if (isYes) void remove()
          }}
        >
          <p>{texts.removeText}</p>
        </Confirm>
      )}
    </>
  )
}

/** State, spend and buttons of a conversation. */
export function ConversationHead({ feed }: { readonly feed: ConversationFeed }): ReactElement {
  const { workbench } = useParts()
  const record = useStore(feed.record)
  const isOwner = useIsOwner(record?.sandbox ?? '')
  const isShared = useIsShared(record)
  return (
    <header className="run-head">
      <Status feed={feed} />
      {record !== undefined && (
        <span className="dim">
          {agentTexts.run.spent(agentTexts.spend(record.usage.costUsd), agentTexts.spend(record.budgetUsd))}
        </span>
      )}
      <span className="run-space" />
      <NotifyButton />
      {record !== undefined && !isShared && (
        <IconButton
          icon="terminal"
          label={agentTexts.run.openTerminal}
          onClick={() =>
            void openAgentTerminal(workbench, record.sandbox, (run) => run.startsWith(`${record.id}-`))
          }
        />
      )}
      {record !== undefined && !isShared && <TuiButton record={record} feed={feed} />}
      {record !== undefined && isOwner && <ShareButton record={record} />}
      <StopButton feed={feed} />
      {record !== undefined && !isShared && <RemoveButton record={record} feed={feed} />}
    </header>
  )
}
