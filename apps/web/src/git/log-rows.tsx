import { printable } from '@sandwire/react'
import { type ReactElement, useCallback, useEffect, useState } from 'react'
import { type GitCommit, readDiff, readLog } from '../api/git.ts'
import { shownName } from '../files/shown-name.ts'
import { reveal } from '../layout/layout.ts'
import { agoOrAhead } from '../shell/time-text.ts'
import { useParts } from '../state/context.ts'

/** Commits, the last first, and the files that each changed. */
export function LogRows({
  sandbox,
  head,
}: {
  readonly sandbox: string
  readonly head: string
}): ReactElement {
  const { workbench } = useParts()
  const [commits, setCommits] = useState<readonly GitCommit[]>()
  const [hasMore, setHasMore] = useState(false)
  const load = useCallback(
    async (after?: string) => {
      const page = await workbench.attempt('Cannot read the log', () => readLog(sandbox, after))
      if (page === undefined) return
      setCommits((old) => (after === undefined ? page.commits : [...(old ?? []), ...page.commits]))
      setHasMore(page.truncated)
    },
    [workbench, sandbox],
  )
  // Read again whenever the last commit is another one.
  useEffect(() => void load(), [load, head])
  if (commits === undefined) return <p className="empty">Loading the log…</p>
  if (commits.length === 0) return <p className="empty">No commits yet.</p>
  return (
    <ul className="rows">
      {commits.map((commit) => (
        <CommitRow key={commit.oid} sandbox={sandbox} commit={commit} />
      ))}
      {hasMore && (
        <li className="row">
          <button type="button" className="row-main" onClick={() => void load(commits.at(-1)?.oid)}>
            Older commits…
          </button>
        </li>
      )}
    </ul>
  )
}

function CommitRow({
  sandbox,
  commit,
}: {
  readonly sandbox: string
  readonly commit: GitCommit
}): ReactElement {
  const { workbench } = useParts()
  const [files, setFiles] = useState<readonly string[]>()
  const [isOpen, setOpen] = useState(false)
  const { oid, parents, author, message, refs } = commit
  const toggle = async (): Promise<void> => {
    setOpen(!isOpen)
    const [parent] = parents
    if (isOpen || files !== undefined || parent === undefined) return
    const diff = await workbench.attempt('Cannot read the commit', () =>
      readDiff(sandbox, { from: parent, to: oid }),
    )
    if (diff !== undefined) setFiles(diff.files.map(({ path }) => path))
  }
  const show = (path: string): void =>
    workbench.changeLayout((layout) =>
      reveal(layout, { kind: 'diff', sandbox, path, of: { commit: oid } }, workbench.mint),
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
              {oid.slice(0, 8)} · {printable(author.name)} · {agoOrAhead(author.timeMs, Date.now())}
              {refs.length > 0 && ` · ${printable(refs.join(', '))}`}
            </small>
          </span>
        </button>
      </div>
      {isOpen && parents.length === 0 && <p className="tree-note dim">The first commit.</p>}
      {isOpen && files === undefined && parents.length > 0 && <p className="tree-note dim">Loading…</p>}
      {isOpen && files !== undefined && (
        <ul className="rows commit-files">
          {files.map((path) => (
            <li key={path}>
              <button type="button" className="tree-line" onClick={() => show(path)}>
                {shownName(path)}
              </button>
            </li>
          ))}
        </ul>
      )}
    </li>
  )
}
