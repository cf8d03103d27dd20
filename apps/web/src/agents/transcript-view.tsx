import { memo, type ReactElement, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { agentTexts } from '../texts/agents.ts'
import type { AgentChannel } from './agent-channel.ts'
import { ChunkHeights, type ChunkRange } from './chunk-heights.ts'
import { Markdown } from './markdown.tsx'
import { RequestCard } from './request-card.tsx'
import { ToolCall } from './tool-call.tsx'
import type { Note, TranscriptItem, TranscriptState } from './transcript.ts'

const { run: texts, notes, receipts, outcomes } = agentTexts

/** Characters of a message that are quoted. */
const QUOTED_CHARS = 80

/** The beginning of a message, on one line. */
export function excerptOf(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length > QUOTED_CHARS ? `${line.slice(0, QUOTED_CHARS).toWellFormed()}…` : line
}

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
    case 'restored':
      return note.text === null ? notes.undone(note.by) : notes.restored(excerptOf(note.text), note.by)
  }
}

function Item({
  channel,
  item,
  isPending,
  restore,
}: {
  readonly channel: AgentChannel
  readonly item: TranscriptItem
  readonly isPending: boolean
  readonly restore: Restorable
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
          <small className="dim">
            {item.receipt === null ? item.by : `${item.by} · ${item.problem ?? receipts[item.receipt]}`}
            {restore.messages.has(item.messageId) && (
              <>
                {' · '}
                <button
                  type="button"
                  className="link"
                  onClick={() => channel.restore?.({ message: item.messageId })}
                >
                  {texts.restore}
                </button>
              </>
            )}
          </small>
        </div>
      )
    case 'plan':
      return (
        <div className="plan">
          <h3>{texts.plan}</h3>
          <Markdown text={item.text} />
        </div>
      )
    case 'request':
      return (
        <RequestCard channel={channel} request={item.request} outcome={item.outcome} isPending={isPending} />
      )
    case 'note':
      if (item.note.kind === 'output')
        return (
          <details className="thinking">
            <summary>{notes.output}</summary>
            <pre tabIndex={0}>{item.note.text}</pre>
          </details>
        )
      return (
        <p className={`note ${item.tone}`}>
          {describeNote(item.note)}
          {restore.undo === item.id && (
            <>
              {' '}
              <button type="button" className="link" onClick={() => channel.restore?.({ undo: true })}>
                {texts.undoRestore}
              </button>
            </>
          )}
        </p>
      )
  }
}

const NONE: ReadonlySet<string> = new Set()
/** Id of the task of a run among its messages. */
const TASK = 'task'

/** What the files can be restored to now. */
export interface Restorable {
  /** Ids of messages. */
  readonly messages: ReadonlySet<string>
  /** Item of the restore that can be undone. */
  readonly undo: string | undefined
}

const NOT_RESTORABLE: Restorable = { messages: NONE, undo: undefined }

function isRestorable(item: TranscriptItem, { messages, undo }: Restorable): boolean {
  return item.id === undo || (item.kind === 'message' && messages.has(item.messageId))
}

/** Drawn again only when one of its items has changed. */
const Chunk = memo(function Chunk({
  channel,
  items,
  pending,
  restore,
  index,
  observe,
}: {
  readonly channel: AgentChannel
  readonly items: readonly TranscriptItem[]
  readonly pending: ReadonlySet<string>
  readonly restore: Restorable
  readonly index: number
  /** Watches the height of the element. */
  readonly observe: (index: number, element: HTMLElement) => () => void
}): ReactElement {
  const element = useRef<HTMLDivElement>(null)
  useLayoutEffect(
    () => (element.current === null ? undefined : observe(index, element.current)),
    [index, observe],
  )
  return (
    <div ref={element} className="transcript-chunk">
      {items.map((item) => (
        <div key={item.id} className="transcript-item">
          <Item
            channel={channel}
            item={item}
            isPending={item.kind === 'request' && pending.has(item.request.requestId)}
            restore={restore}
          />
        </div>
      ))}
    </div>
  )
})

/** Distance to the end at which new items scroll the list. */
const NEAR_PX = 40

/** Everything the agent wrote and did. It follows the end unless the reader has scrolled up. Only what is near the visible part is drawn. */
export function TranscriptView({
  channel,
  task,
  transcript: { chunks, partial, pending },
  restore = NOT_RESTORABLE,
  placeholder,
}: {
  readonly channel: AgentChannel
  /** Shown before everything else. */
  readonly task?: string
  readonly transcript: TranscriptState
  readonly restore?: Restorable
  /** Shown while there is nothing else; undefined: nothing. */
  readonly placeholder: string | undefined
}): ReactElement {
  const element = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  const lastTop = useRef(0)
  const [heights] = useState(() => new ChunkHeights())
  const [range, setRange] = useState<ChunkRange>()
  const [hasNew, setHasNew] = useState(false)
  const scrollToEnd = (): void => {
    const list = element.current
    if (list !== null) list.scrollTop = list.scrollHeight
    isAtEnd.current = true
    setRange(undefined)
    setHasNew(false)
  }
  // Without a range, the end is drawn.
  const { start, end } = range ?? heights.atEnd(chunks.length, element.current?.clientHeight ?? 0)
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
  const observe = useCallback(
    (index: number, chunk: HTMLElement) => {
      const observer = new ResizeObserver(() => {
        heights.set(index, chunk.offsetHeight)
        const list = element.current
        if (isAtEnd.current && list !== null) list.scrollTop = list.scrollHeight
      })
      observer.observe(chunk)
      return () => observer.disconnect()
    },
    [heights],
  )
  const onScroll = ({ scrollHeight, scrollTop, clientHeight }: HTMLElement): void => {
    const isNear = scrollHeight - scrollTop - clientHeight < NEAR_PX
    // What is added below an end that was scrolled to does not move the reader away from it.
    isAtEnd.current = isNear || (isAtEnd.current && scrollTop >= lastTop.current)
    lastTop.current = scrollTop
    if (isAtEnd.current) {
      setRange(undefined)
      setHasNew(false)
      return
    }
    const next = heights.around(chunks.length, scrollTop, clientHeight)
    setRange((now) => (now?.start === next.start && now.end === next.end ? now : next))
  }
  const waiting = new Set(pending.map(({ requestId }) => requestId))
  return (
    <div className="transcript-frame">
      <h2 className="visually-hidden">{texts.transcript}</h2>
      <div
        ref={element}
        className="transcript"
        role="log"
        aria-label={texts.transcript}
        tabIndex={0}
        onScroll={({ currentTarget }) => onScroll(currentTarget)}
      >
        {task !== undefined && (
          <div className="own-message">
            <p>{task}</p>
            {restore.messages.has(TASK) && (
              <small className="dim">
                <button type="button" className="link" onClick={() => channel.restore?.({ message: TASK })}>
                  {texts.restore}
                </button>
              </small>
            )}
          </div>
        )}
        <div aria-hidden="true" style={{ height: heights.total(0, start) }} />
        {chunks.slice(start, end).map((items, at) => {
          const isWaiting = items.some(
            (item) => item.kind === 'request' && waiting.has(item.request.requestId),
          )
          return (
            <Chunk
              key={start + at}
              index={start + at}
              channel={channel}
              items={items}
              pending={isWaiting ? waiting : NONE}
              restore={items.some((item) => isRestorable(item, restore)) ? restore : NOT_RESTORABLE}
              observe={observe}
            />
          )
        })}
        <div aria-hidden="true" style={{ height: heights.total(end, chunks.length) }} />
        {partial !== undefined && (
          <div className="transcript-item partial" aria-hidden="true">
            {partial.isThinking ? <p className="dim">{texts.thinking}…</p> : <p>{partial.text}</p>}
          </div>
        )}
        {chunks.length === 0 && placeholder !== undefined && <p className="dim">{placeholder}</p>}
      </div>
      {hasNew && (
        <button type="button" className="transcript-jump" onClick={scrollToEnd}>
          {texts.jump}
        </button>
      )}
    </div>
  )
}
