import { memo, type ReactElement, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { agentTexts } from '../texts/agents.ts'
import { Markdown } from './markdown.tsx'
import { RequestCard } from './request-card.tsx'
import { ToolCall } from './tool-call.tsx'
import type { Note, TranscriptItem, TranscriptState } from './transcript.ts'

const { run: texts, notes, receipts, outcomes } = agentTexts

function describeNote(note: Exclude<Note, { kind: 'output' }>): string {
  switch (note.kind) {
    case 'retry':
      return notes.retry(note.attempt, note.maxAttempts)
    case 'stopping':
      return notes.stopping(note.message)
    case 'warning':
      return note.message
    case 'ended':
      return notes.ended(outcomes[note.status] ?? note.status)
  }
}

function Item({
  run,
  item,
  isPending,
}: {
  readonly run: string
  readonly item: TranscriptItem
  readonly isPending: boolean
}): ReactElement {
  switch (item.kind) {
    case 'text':
      return item.isThinking ? (
        <details className="thinking">
          <summary>{texts.thinking}</summary>
          <Markdown text={item.text} />
        </details>
      ) : (
        <Markdown text={item.text} />
      )
    case 'tool':
      return <ToolCall item={item} />
    case 'message':
      return (
        <div className="own-message">
          <p>{item.text}</p>
          <small className="dim">{`${item.by} · ${receipts[item.receipt]}`}</small>
        </div>
      )
    case 'plan':
      return (
        <div className="plan">
          <h4>{texts.plan}</h4>
          <Markdown text={item.text} />
        </div>
      )
    case 'request':
      return <RequestCard run={run} request={item.request} outcome={item.outcome} isPending={isPending} />
    case 'note':
      if (item.note.kind === 'output')
        return (
          <details className="thinking">
            <summary>{notes.output}</summary>
            <pre tabIndex={0}>{item.note.text}</pre>
          </details>
        )
      return <p className={`note ${item.tone}`}>{describeNote(item.note)}</p>
  }
}

const NONE: ReadonlySet<string> = new Set()

/** Drawn again only when one of its items has changed. */
const Chunk = memo(function Chunk({
  run,
  items,
  pending,
}: {
  readonly run: string
  readonly items: readonly TranscriptItem[]
  readonly pending: ReadonlySet<string>
}): ReactElement {
  return (
    <div className="transcript-chunk">
      {items.map((item) => (
        <div key={item.id} className="transcript-item">
          <Item
            run={run}
            item={item}
            isPending={item.kind === 'request' && pending.has(item.request.requestId)}
          />
        </div>
      ))}
    </div>
  )
})

/** Distance to the end at which new items scroll the list. */
const NEAR_PX = 40

/** Everything the agent wrote and did. It follows the end unless the reader has scrolled up. */
export function TranscriptView({
  run,
  task,
  transcript: { chunks, partial, pending, isComplete },
}: {
  readonly run: string
  readonly task: string
  readonly transcript: TranscriptState
}): ReactElement {
  const element = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  const [hasNew, setHasNew] = useState(false)
  const scrollToEnd = (): void => {
    const list = element.current
    if (list !== null) list.scrollTop = list.scrollHeight
    isAtEnd.current = true
    setHasNew(false)
  }
  useLayoutEffect(() => {
    if (isAtEnd.current) scrollToEnd()
    else setHasNew(true)
  }, [chunks, partial])
  // The list becomes taller when its pane does.
  useEffect(() => {
    const list = element.current
    if (list === null) return undefined
    const observer = new ResizeObserver(() => {
      if (isAtEnd.current) list.scrollTop = list.scrollHeight
    })
    observer.observe(list)
    return () => observer.disconnect()
  }, [])
  const waiting = new Set(pending.map(({ requestId }) => requestId))
  return (
    <div className="transcript-frame">
      <div
        ref={element}
        className="transcript"
        role="log"
        aria-label={texts.transcript}
        tabIndex={0}
        onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
          isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR_PX
          if (isAtEnd.current) setHasNew(false)
        }}
      >
        <div className="own-message">
          <p>{task}</p>
        </div>
        {chunks.map((items, at) => {
          const isWaiting = items.some(
            (item) => item.kind === 'request' && waiting.has(item.request.requestId),
          )
          return <Chunk key={at} run={run} items={items} pending={isWaiting ? waiting : NONE} />
        })}
        {partial !== undefined && (
          <div className="transcript-item partial" aria-hidden="true">
            {partial.isThinking ? <p className="dim">{texts.thinking}…</p> : <p>{partial.text}</p>}
          </div>
        )}
        {chunks.length === 0 && !isComplete && <p className="dim">{texts.waitsForStart}</p>}
      </div>
      {hasNew && (
        <button type="button" className="transcript-jump" onClick={scrollToEnd}>
          {texts.jump}
        </button>
      )}
    </div>
  )
}
