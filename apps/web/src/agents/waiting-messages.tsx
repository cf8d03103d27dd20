import { useStore } from '@sandwire/react'
import { type ReactElement, useState } from 'react'
import { useParts } from '../state/context.ts'
import { agentTexts } from '../texts/agents.ts'
import type { ConversationFeed, FeedFrame } from './conversation-feed.ts'
import type { WaitingMessage } from './conversation-frames.ts'

const { conversation: texts } = agentTexts

function Waiting({
  message: { id, text, by },
  isOnline,
  transmit,
}: {
  readonly message: WaitingMessage
  readonly isOnline: boolean
  readonly transmit: (frame: FeedFrame) => boolean
}): ReactElement {
  const [edited, setEdited] = useState<string>()
  if (edited !== undefined)
    return (
      <form
        className="own-message waiting"
        onSubmit={(event) => {
          event.preventDefault()
          const content = edited.trim()
          const frame: FeedFrame =
            content === '' ? { type: 'message_remove', id } : { type: 'message_edit', id, content }
          if (transmit(frame)) setEdited(undefined)
        }}
      >
        <textarea
          autoFocus
          rows={2}
          value={edited}
          aria-label={texts.editWaiting}
          onChange={(event) => setEdited(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === 'Escape') setEdited(undefined)
          }}
        />
        <span className="message-actions">
          <button type="submit" disabled={!isOnline}>
            {texts.save}
          </button>
          <button type="button" onClick={() => setEdited(undefined)}>
            {texts.cancelEdit}
          </button>
        </span>
      </form>
    )
  return (
    <div className="own-message waiting">
      <p>{text}</p>
      <span className="message-actions">
        <small className="dim">{by}</small>
        <button type="button" disabled={!isOnline} onClick={() => transmit({ type: 'message_now', id })}>
          {texts.sendNow}
        </button>
        <button type="button" disabled={!isOnline} onClick={() => setEdited(text)}>
          {agentTexts.composer.edit}
        </button>
        <button type="button" disabled={!isOnline} onClick={() => transmit({ type: 'message_remove', id })}>
          {texts.removeWaiting}
        </button>
      </span>
    </div>
  )
}

/** Messages that the server keeps until the agent's turn ends. */
export function WaitingMessages({ feed }: { readonly feed: ConversationFeed }): ReactElement | null {
  const { workbench } = useParts()
  const { conversation, isOnline } = useStore(feed.state)
  const { waiting = [], isPaused = false } = conversation ?? {}
  if (waiting.length === 0) return null
  const transmit = (frame: FeedFrame): boolean => {
    const isSent = feed.transmit(frame)
    if (!isSent) workbench.notify('error', texts.notSent)
    return isSent
  }
  return (
    <section className="waiting-messages" aria-label={texts.waiting(waiting.length)}>
      <h3 className="dim">{isPaused ? texts.paused(waiting.length) : texts.waiting(waiting.length)}</h3>
      {waiting.map((message) => (
        <Waiting key={message.id} message={message} isOnline={isOnline} transmit={transmit} />
      ))}
    </section>
  )
}
