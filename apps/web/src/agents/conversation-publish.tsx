import { useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useState } from 'react'
import { type Conversation, publishConversation, readChange } from '../api/conversations.ts'
import type { PublishableChange } from '../api/publish.ts'
import { displayName } from '../files/display-name.ts'
import { Dialog } from '../shell/dialog.tsx'
import { useCanWorkIn } from '../state/rights.ts'
import { messageOf } from '../state/workbench.ts'
import { agentTexts } from '../texts/agents.ts'
import type { ConversationFeed } from './conversation-feed.ts'
import { PublishDialog, PublishedNote } from './publish-dialog.tsx'

const { publish: texts } = agentTexts

type Load =
  | { readonly kind: 'loading' }
  | { readonly kind: 'ready'; readonly change: PublishableChange }
  | { readonly kind: 'failed'; readonly message: string }

function useChange(record: Conversation): Load {
  const [load, setLoad] = useState<Load>({ kind: 'loading' })
  const { id, sandbox } = record
  useEffect(() => {
    let isCurrent = true
    readChange({ id, sandbox }).then(
      (change) => {
        if (!isCurrent) return
        const { problem } = change
        setLoad(problem === null ? { kind: 'ready', change } : { kind: 'failed', message: problem })
      },
      (caught: unknown) => isCurrent && setLoad({ kind: 'failed', message: messageOf(caught) }),
    )
    return () => {
      isCurrent = false
    }
  }, [id, sandbox])
  return load
}

function Files({
  names,
  title,
}: {
  readonly names: readonly string[]
  readonly title: string
}): ReactElement {
  return (
    <details className="publish-files">
      <summary>{title}</summary>
      <ul>
        {names.map((name) => (
          <li key={name}>{displayName(name)}</li>
        ))}
      </ul>
    </details>
  )
}

/** Shows what would be published, then the dialog. */
function ConversationPublishDialog({
  record,
  feed,
  onClose,
}: {
  readonly record: Conversation
  readonly feed: ConversationFeed
  readonly onClose: () => void
}): ReactElement {
  const load = useChange(record)
  if (load.kind !== 'ready')
    return (
      <Dialog title={texts.title} onClose={onClose}>
        <p className="dialog-text" role="status">
          {load.kind === 'loading' ? texts.reading : load.message}
        </p>
        <div className="dialog-actions">
          <button type="button" onClick={onClose}>
            {texts.close}
          </button>
        </div>
      </Dialog>
    )
  const { repo, pullRequest, files, withheld } = load.change
  const { published } = record
  // A pull request that is missing is opened for the branch that is there.
  const isComplete = published?.pullRequest !== null || !pullRequest
  return (
    <PublishDialog
      repo={repo}
      canOpenPullRequest={pullRequest}
      task={record.title}
      before={isComplete ? (published ?? undefined) : undefined}
      summary=""
      publish={(publication) => publishConversation(record.id, { ...publication, repo })}
      onPublished={() => void feed.read()}
      onClose={onClose}
    >
      <Files names={files} title={agentTexts.run.files(files.length)} />
      {withheld.length > 0 && <Files names={withheld} title={texts.withheld(withheld.length)} />}
    </PublishDialog>
  )
}

/** Publishes the changes in the workspace of a conversation, and says where they were published last. */
export function ConversationPublish({
  record,
  feed,
}: {
  readonly record: Conversation
  readonly feed: ConversationFeed
}): ReactElement {
  const [isOpen, setOpen] = useState(false)
  const canWork = useCanWorkIn(record.sandbox)
  const { conversation, isOnline } = useStore(feed.state)
  const { published } = record
  return (
    <div className="publish-offer">
      {published !== null && <PublishedNote published={published} />}
      {canWork && (
        <button
          type="button"
          disabled={!isOnline || conversation?.state !== 'idle'}
          onClick={() => setOpen(true)}
        >
          {texts.open}
        </button>
      )}
      {isOpen && <ConversationPublishDialog record={record} feed={feed} onClose={() => setOpen(false)} />}
    </div>
  )
}
