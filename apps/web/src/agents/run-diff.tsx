import { type ReactElement, useEffect, useState } from 'react'
import { readRunDiff, type Run, sendMessage } from '../api/runs.ts'
import { IconButton } from '../shell/icon.tsx'
import { useParts } from '../state/context.ts'
import { formatFailure } from '../state/workbench.ts'
import { agentTexts } from '../texts/agents.ts'
import {
  formatComments,
  type LineComment,
  type PatchFile,
  type PatchLine,
  splitPatch,
} from './patch-files.ts'

const { diff: texts } = agentTexts

const MAX_SHOWN_FILES = 200
const MAX_SHOWN_LINES = 5_000

type Load =
  | { readonly kind: 'loading' }
  | { readonly kind: 'ready'; readonly files: readonly PatchFile[] }
  | { readonly kind: 'failed'; readonly message: string }

function useDiff(run: Run): Load {
  const [load, setLoad] = useState<Load>({ kind: 'loading' })
  const { id, result } = run
  const hasDiff = result !== null && result.diffBytes !== null
  useEffect(() => {
    if (!hasDiff) return undefined
    let isOver = false
    readRunDiff(id).then(
      (patch) => {
        if (!isOver) setLoad({ kind: 'ready', files: splitPatch(patch) })
      },
      (caught: unknown) => {
        if (!isOver) setLoad({ kind: 'failed', message: formatFailure(texts.cannotLoad, caught) })
      },
    )
    return () => {
      isOver = true
    }
  }, [id, hasDiff])
  return load
}

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
      <code>{`${SIGNS[kind]}${text}`}</code>
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

function FileDiff({
  file,
  comments,
  change,
}: {
  readonly file: PatchFile
  readonly comments: readonly LineComment[]
  /** Undefined: the agent takes no comments any more. */
  readonly change: ((comments: readonly LineComment[]) => void) | undefined
}): ReactElement {
  const [open, setOpen] = useState<number>()
  const { path, lines, added, removed } = file
  const isOn = (comment: LineComment, { line, kind }: PatchLine): boolean =>
    comment.path === path && comment.line === line && comment.isOld === (kind === 'removed')
  return (
    <details className="patch-file" open>
      <summary>
        <span className="patch-path">{path}</span> <ins>{`+${added}`}</ins> <del>{`-${removed}`}</del>
      </summary>
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
    </details>
  )
}

/** The exact diff of an ended run, with comments on its lines that become the task of a further run. */
export function RunDiff({
  run,
  files,
  onFeedback,
}: {
  readonly run: Run
  /** Paths that events have named so far. */
  readonly files: readonly string[]
  /** Begins a further run with these comments. */
  readonly onFeedback: (text: string) => void
}): ReactElement {
  const load = useDiff(run)
  const { workbench } = useParts()
  const [comments, setComments] = useState<readonly LineComment[]>([])
  if (run.result === null)
    return (
      <div className="run-diff">
        <p className="dim">{files.length === 0 ? texts.noneYet : texts.later}</p>
        <ul>
          {files.map((path) => (
            <li key={path}>{path}</li>
          ))}
        </ul>
      </div>
    )
  if (run.result.diffBytes === null)
    return <p className="empty">{run.result.diffProblem ?? run.message ?? texts.none}</p>
  if (run.result.diffBytes === 0) return <p className="empty">{texts.none}</p>
  if (load.kind === 'loading') return <p className="empty">{texts.loading}</p>
  if (load.kind === 'failed') return <p className="empty">{load.message}</p>
  const send = async (): Promise<void> => {
    const text = formatComments(comments)
    if (run.state === 'ended') onFeedback(text)
    else {
      await workbench.attempt(texts.cannotLoad, () => sendMessage(run.id, crypto.randomUUID(), text))
      setComments([])
    }
  }
  return (
    <div className="run-diff">
      <p>
        <a
          className="model-link"
          href={`/api/runs/${encodeURIComponent(run.id)}/diff`}
          download={`${run.id}.patch`}
        >
          {texts.download}
        </a>
      </p>
      {load.files.length > MAX_SHOWN_FILES && <p className="dim">{texts.tooLarge(MAX_SHOWN_FILES)}</p>}
      {load.files.slice(0, MAX_SHOWN_FILES).map((file) => (
        <FileDiff key={file.path} file={file} comments={comments} change={setComments} />
      ))}
      {comments.length > 0 && (
        <button type="button" className="primary patch-send" onClick={() => void send()}>
          {texts.send(comments.length)}
        </button>
      )}
    </div>
  )
}
