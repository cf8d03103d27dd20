import { printable } from '@sandwire/react'
import { type ReactElement, useCallback, useEffect, useRef, useState } from 'react'
import { type GitCommit, type GitDiff, type GitRepository, readDiff, readLog } from '../api/git.ts'
import { displayName } from '../files/display-name.ts'
import { reveal } from '../layout/layout.ts'
import { formatRelativeTime } from '../shell/format-time.ts'
import { useParts } from '../state/context.ts'
import { gitTexts } from '../texts/git.ts'
import { diffView } from './git-status.ts'

/** Commits, newest first, with the files that each changed. */
export function LogRows({
  repository,
  head,
  comesIntoView,
}: {
  readonly repository: GitRepository
  readonly head: string
  /** The user has just expanded the log. */
  readonly comesIntoView: boolean
}): ReactElement {
  const { workbench } = useParts()
  const [commits, setCommits] = useState<readonly GitCommit[]>()
  const [hasMore, setHasMore] = useState(false)
  const load = useCallback(
    async (after?: string) => {
      const page = await workbench.attempt(gitTexts.log.cannotRead, () => readLog(repository, after))
      if (page === undefined) return
      setCommits((old) => (after === undefined ? page.commits : [...(old ?? []), ...page.commits]))
      setHasMore(page.truncated)
    },
    [workbench, repository],
  )
  const element = useRef<HTMLUListElement>(null)
  const isLoaded = commits !== undefined
  // The log expands below the fold.
  useEffect(() => {
    // `scrollIntoView` returns a promise in newer browsers, which must not become the effect's cleanup.
    if (comesIntoView) element.current?.scrollIntoView({ block: 'start' })
  }, [isLoaded, comesIntoView])
  // Reloads when HEAD moves.
  useEffect(() => void load(), [load, head])
  if (commits === undefined) return <p className="empty">{gitTexts.loading}</p>
  if (commits.length === 0) return <p className="empty">{gitTexts.noCommits}</p>
  return (
    <ul ref={element} className="rows log" aria-label={gitTexts.log.commits}>
      {commits.map((commit) => (
        <CommitRow key={commit.oid} repository={repository} commit={commit} />
      ))}
      {hasMore && (
        <li className="row">
          <button type="button" className="row-main" onClick={() => void load(commits.at(-1)?.oid)}>
            {gitTexts.log.older}
          </button>
        </li>
      )}
    </ul>
  )
}

function CommitRow({
  repository,
  commit,
}: {
  readonly repository: GitRepository
  readonly commit: GitCommit
}): ReactElement {
  const { workbench } = useParts()
  const [files, setFiles] = useState<GitDiff['files']>()
  const [isOpen, setOpen] = useState(false)
  const { oid, author, message, refs } = commit
  const toggle = async (): Promise<void> => {
    setOpen(!isOpen)
    if (isOpen || files !== undefined) return
    const diff = await workbench.attempt(gitTexts.log.cannotReadCommit, () =>
      readDiff(repository, { to: oid }),
    )
    if (diff !== undefined) setFiles(diff.files)
  }
  const show = (path: string, from: string | undefined): void =>
    workbench.changeLayout((layout) =>
      reveal(layout, diffView(repository, { path, from, of: { commit: oid } }), workbench.mint),
    )
  return (
    <li>
      <div className="row">
        <button
          type="button"
          className="row-main"
          aria-expanded={isOpen}
          title={message}
          onClick={() => void toggle()}
        >
          <span className="row-text">
            <span className="row-name">{printable(message.split('\n')[0] ?? '')}</span>
            <small>
              {oid.slice(0, 8)} · {printable(author.name)} · {formatRelativeTime(author.timeMs, Date.now())}
              {refs.length > 0 && ` · ${printable(refs.join(', '))}`}
            </small>
          </span>
        </button>
      </div>
      {isOpen && files === undefined && <p className="tree-note dim">{gitTexts.loading}</p>}
      {isOpen && files !== undefined && (
        <ul className="rows commit-files">
          {files.length === 0 && <li className="tree-note dim">{gitTexts.log.noFiles}</li>}
          {files.map(({ path, from }) => (
            <li key={path}>
              <button type="button" className="tree-line" onClick={() => show(path, from)}>
                {from === undefined ? displayName(path) : `${displayName(from)} → ${displayName(path)}`}
              </button>
            </li>
          ))}
        </ul>
      )}
    </li>
  )
}
