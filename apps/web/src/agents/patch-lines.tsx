import { revealInvisible } from '@sandwire/react'
import { type ReactElement, useState } from 'react'
import { IconButton } from '../shell/icon.tsx'
import { agentTexts } from '../texts/agents.ts'
import type { LineComment, PatchFile, PatchLine } from './patch-files.ts'

const { diff: texts } = agentTexts

const MAX_SHOWN_LINES = 5_000

const SIGNS = { added: '+', removed: '-', same: ' ', hunk: '', note: '' } as const

function Line({
  line: { kind, text, line },
  onComment,
}: {
  readonly line: PatchLine
  readonly onComment: (() => void) | undefined
}): ReactElement {
  return (
    <div className={`patch-line patch-${kind}`}>
      {line === undefined || onComment === undefined ? (
        <span className="patch-number">{line}</span>
      ) : (
        <button type="button" className="patch-number" aria-label={texts.comment(line)} onClick={onComment}>
          {line}
        </button>
      )}
      <code>{`${SIGNS[kind]}${revealInvisible(text)}`}</code>
    </div>
  )
}

function CommentForm({
  line,
  onDone,
}: {
  readonly line: number
  readonly onDone: (text: string | undefined) => void
}): ReactElement {
  const [text, setText] = useState('')
  return (
    <form
      className="patch-comment"
      onSubmit={(event) => {
        event.preventDefault()
        onDone(text.trim() === '' ? undefined : text.trim())
      }}
    >
      <textarea
        autoFocus
        rows={2}
        value={text}
        aria-label={texts.comment(line)}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') onDone(undefined)
        }}
      />
      <button type="submit">{texts.add}</button>
    </form>
  )
}

/** The changed lines of a file, with comments on them. */
export function PatchLines({
  file: { path, lines },
  comments,
  change,
}: {
  readonly file: PatchFile
  readonly comments: readonly LineComment[]
  /** Undefined: the agent takes no comments any more. */
  readonly change: ((comments: readonly LineComment[]) => void) | undefined
}): ReactElement {
  const [open, setOpen] = useState<number>()
  const isOn = (comment: LineComment, { line, kind }: PatchLine): boolean =>
    comment.path === path && comment.line === line && comment.isOld === (kind === 'removed')
  return (
    <div className="patch-lines" tabIndex={0} role="group" aria-label={path}>
      {lines.slice(0, MAX_SHOWN_LINES).map((line, at) => (
        <div key={at}>
          <Line line={line} onComment={change === undefined ? undefined : () => setOpen(at)} />
          {comments
            .filter((comment) => isOn(comment, line))
            .map((comment) => (
              <p key={comment.text} className="patch-comment">
                <span>{comment.text}</span>
                <IconButton
                  icon="close"
                  label={texts.remove}
                  onClick={() => change?.(comments.filter((other) => other !== comment))}
                />
              </p>
            ))}
          {open === at && line.line !== undefined && (
            <CommentForm
              line={line.line}
              onDone={(text) => {
                setOpen(undefined)
                if (text !== undefined)
                  change?.([
                    ...comments,
                    { path, line: line.line ?? 0, isOld: line.kind === 'removed', text },
                  ])
              }}
            />
          )}
        </div>
      ))}
    </div>
  )
}
