import { type ReactElement, useEffect, useState } from 'react'
import type { Published } from '../api/publish.ts'
import { publishRun, readRunDiff, type Run, sendMessage } from '../api/runs.ts'
import { useParts } from '../state/context.ts'
import { formatFailure } from '../state/workbench.ts'
import { agentTexts } from '../texts/agents.ts'
import { formatComments, type LineComment, type PatchFile, splitPatch } from './patch-files.ts'
import { PatchLines } from './patch-lines.tsx'
import { PublishDialog, PublishedNote } from './publish-dialog.tsx'

const { diff: texts } = agentTexts

const MAX_SHOWN_FILES = 200

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

function FileDiff({
  file,
  comments,
  change,
}: {
  readonly file: PatchFile
  readonly comments: readonly LineComment[]
  readonly change: (comments: readonly LineComment[]) => void
}): ReactElement {
  const { path, added, removed } = file
  return (
    <details className="patch-file" open>
      <summary>
        <span className="patch-path">{path}</span> <ins>{`+${added}`}</ins> <del>{`-${removed}`}</del>
      </summary>
      <PatchLines file={file} comments={comments} change={change} />
    </details>
  )
}

/** Offers to publish the changes, or says why they cannot be; and where they were published last. */
function PublishOffer({ run }: { readonly run: Run }): ReactElement | null {
  const [isOpen, setOpen] = useState(false)
  const [done, setDone] = useState<Published>()
  const { publishable, result } = run
  const published = done ?? run.published
  return (
    <>
      {published !== null && <PublishedNote published={published} />}
      {publishable !== null && publishable.problem !== null && <p className="dim">{publishable.problem}</p>}
      {publishable !== null && publishable.problem === null && (
        <p>
          <button type="button" onClick={() => setOpen(true)}>
            {agentTexts.publish.open}
          </button>
        </p>
      )}
      {isOpen && (
        <PublishDialog
          repo={run.repo ?? ''}
          canOpenPullRequest={publishable?.pullRequest === true}
          task={run.task}
          summary={result?.summary ?? ''}
          publish={(publication) => publishRun(run.id, publication)}
          onPublished={setDone}
          onClose={() => setOpen(false)}
        />
      )}
    </>
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
      <PublishOffer run={run} />
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
