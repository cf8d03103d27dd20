import { useStore } from '@sandwire/react'
import { type KeyboardEvent, type ReactElement, useState } from 'react'
import { storeText } from '../state/storage.ts'
import { agentTexts } from '../texts/agents.ts'
import type { ConversationFeed } from './conversation-feed.ts'
import type { UnsentMessage } from './unsent-messages.ts'
import { WaitingMessages } from './waiting-messages.tsx'

const { composer: texts, conversation: conversationTexts } = agentTexts
const DRAFT_KEY = 'sandwire.draft.'

/** A message that the server does not have. */
function Unsent({
  message: { id, text, problem },
  feed,
  isOnline,
  onEdit,
}: {
  readonly message: UnsentMessage
  readonly feed: ConversationFeed
  readonly isOnline: boolean
  readonly onEdit: (text: string) => void
}): ReactElement {
  return (
    <div className="own-message unsent">
      <p>{text}</p>
      {problem === undefined ? (
        <small className="dim">{isOnline ? texts.sending : conversationTexts.waitsForServer}</small>
      ) : (
        <p role="alert">
          <small className="note error">{`${texts.failed}: ${problem}`}</small>{' '}
          <button type="button" onClick={() => feed.retry(id)}>
            {texts.retry}
          </button>{' '}
          <button
            type="button"
            onClick={() => {
              onEdit(text)
              feed.unsent.remove(id)
            }}
          >
            {texts.edit}
          </button>
        </p>
      )}
    </div>
  )
}

/** Takes messages to the agent. A draft, and what the server does not have yet, survive a reload. */
export function ConversationComposer({ feed }: { readonly feed: ConversationFeed }): ReactElement {
  const key = DRAFT_KEY + feed.id
  const [text, setText] = useState(() => localStorage.getItem(key) ?? '')
  const [isFull, setFull] = useState(false)
  const unsent = useStore(feed.unsent.all)
  const { isOnline, conversation } = useStore(feed.state)
  const isWorking = conversation?.state === 'working' || conversation?.state === 'awaiting'
  const change = (next: string): void => {
    setText(next)
    setFull(false)
    storeText(localStorage, key, next)
  }
  const submit = (whenIdle: boolean): void => {
    if (text.trim() === '') return
    if (feed.send(text.trim(), whenIdle)) change('')
    else setFull(true)
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    submit(!event.ctrlKey && !event.metaKey)
  }
  return (
    <div className="composer">
      <WaitingMessages feed={feed} />
      {unsent.map((message) => (
        <Unsent key={message.id} message={message} feed={feed} isOnline={isOnline} onEdit={change} />
      ))}
      {isFull && (
        <p role="alert" className="note error">
          {conversationTexts.tooMany}
        </p>
      )}
      <div className="composer-row">
        <textarea
          rows={2}
          value={text}
          aria-label={texts.label}
          placeholder={isWorking ? conversationTexts.working : conversationTexts.placeholder}
          onChange={(event) => change(event.target.value)}
          onKeyDown={onKeyDown}
        />
        {isWorking && (
          <button type="button" disabled={text.trim() === ''} onClick={() => submit(false)}>
            {conversationTexts.sendNow}
          </button>
        )}
        <button type="button" className="primary" disabled={text.trim() === ''} onClick={() => submit(true)}>
          {isWorking ? conversationTexts.queue : texts.send}
        </button>
      </div>
    </div>
  )
}
