import { type ReactElement, useEffect, useState } from 'react'
import { request } from '../api/request.ts'
import {
  compareVersions,
  savedUrl,
  type VersionChange,
  type VersionDiff,
  watchStatus,
} from '../api/versions.ts'
import { displayName } from '../files/display-name.ts'
import { textOf } from '../files/file-kind.ts'
import { formatFailure, messageOf } from '../state/workbench.ts'
import { agentTexts } from '../texts/agents.ts'
import { compareTexts } from './compare-texts.ts'
import type { LineComment, PatchFile } from './patch-files.ts'
import { PatchLines } from './patch-lines.tsx'

const { diff: texts } = agentTexts

/** The part of a version that the agent works in. */
const FOLDER = 'workspace/'
const MAX_SHOWN_FILES = 200
/** Files that are open at first. */
const MAX_OPEN_FILES = 10
/** Larger files are not compared. */
const MAX_FILE_BYTES = 512 * 1024

/** Messages after which changes can be shown, oldest first. */
export interface ChangesSince {
  readonly message: string
  readonly text: string
  readonly version: number
}

/** What differs between a version and the newest one, which is read again when files were saved. */
function useDiff(sandbox: string, from: number): { diff: VersionDiff | undefined; problem: string } {
  const [saves, setSaves] = useState(0)
  const [diff, setDiff] = useState<VersionDiff>()
  const [problem, setProblem] = useState('')
  useEffect(
    () =>
      watchStatus(sandbox, (event) => {
        if (event.kind === 'state' && event.state.state === 'idle') setSaves((count) => count + 1)
      }),
    [sandbox],
  )
  useEffect(() => {
    let isCurrent = true
    compareVersions(sandbox, from).then(
      (found) => {
        if (!isCurrent) return
        setDiff(found)
        setProblem('')
      },
      (caught: unknown) => isCurrent && setProblem(formatFailure(texts.cannotLoad, caught)),
    )
    return () => {
      isCurrent = false
    }
  }, [sandbox, from, saves])
  return { diff, problem }
}

type Content = PatchFile | { readonly problem: string }

async function readText(sandbox: string, version: number, path: string): Promise<string | undefined> {
  const response = await request(savedUrl(sandbox, version, path))
  return textOf(new Uint8Array(await response.arrayBuffer()))
}

async function compare(
  sandbox: string,
  { from, to }: Pick<VersionDiff, 'from' | 'to'>,
  { path, change, beforeBytes, afterBytes }: VersionChange,
): Promise<Content> {
  if (Math.max(beforeBytes ?? 0, afterBytes ?? 0) > MAX_FILE_BYTES) return { problem: texts.fileTooLarge }
  const before = change === 'added' ? '' : await readText(sandbox, from, path)
  const after = change === 'removed' ? '' : await readText(sandbox, to, path)
  if (before === undefined || after === undefined) return { problem: texts.binary }
  const patch = compareTexts(path.slice(FOLDER.length), before, after)
  if (patch === undefined) return { problem: texts.fileTooLarge }
  return patch.lines.length === 0 ? { problem: texts.noLines } : patch
}

function ChangedFile({
  sandbox,
  diff: { from, to },
  file,
  isOpenAtFirst,
  comments,
  change,
}: {
  readonly sandbox: string
  readonly diff: VersionDiff
  readonly file: VersionChange
  readonly isOpenAtFirst: boolean
  readonly comments: readonly LineComment[]
  readonly change: (comments: readonly LineComment[]) => void
}): ReactElement {
  const [isOpen, setOpen] = useState(isOpenAtFirst)
  const [content, setContent] = useState<Content>()
  const isFile = file.kind === 'file'
  useEffect(() => {
    if (!isOpen || !isFile) return undefined
    let isCurrent = true
    compare(sandbox, { from, to }, file).then(
      (found) => isCurrent && setContent(found),
      (caught: unknown) => isCurrent && setContent({ problem: messageOf(caught) }),
    )
    return () => {
      isCurrent = false
    }
  }, [sandbox, from, to, file, isOpen, isFile])
  const patch = content !== undefined && 'lines' in content ? content : undefined
  const problem = content !== undefined && 'problem' in content ? content.problem : undefined
  return (
    <details
      className="patch-file"
      open={isOpen}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary>
        <span className="patch-path">{displayName(file.path.slice(FOLDER.length))}</span>{' '}
        <span className="dim">{texts.changes[file.change]}</span>{' '}
        {patch !== undefined && (
          <>
            <ins>{`+${patch.added}`}</ins> <del>{`-${patch.removed}`}</del>
          </>
        )}
      </summary>
      {patch !== undefined && <PatchLines file={patch} comments={comments} change={change} />}
      {problem !== undefined && <p className="note dim">{problem}</p>}
      {isFile && content === undefined && <p className="note dim">{texts.loading}</p>}
    </details>
  )
}

/** What has changed in the workspace since a message, with comments on its lines that go to the agent. */
export function ConversationChanges({
  sandbox,
  since,
  comments,
  change,
  send,
}: {
  readonly sandbox: string
  /** At least one. */
  readonly since: readonly ChangesSince[]
  readonly comments: readonly LineComment[]
  readonly change: (comments: readonly LineComment[]) => void
  readonly send: () => void
}): ReactElement {
  const [chosen, setChosen] = useState<string>()
  const last = since.at(-1)
  const base = since.find(({ message }) => message === chosen) ?? last
  const { diff, problem } = useDiff(sandbox, base?.version ?? 0)
  const files = diff?.changes.filter(({ path, kind }) => path.startsWith(FOLDER) && kind !== 'folder') ?? []
  return (
    <div className="run-diff">
      <label className="field">
        <span>{texts.since}</span>
        <select value={base?.message} onChange={({ target }) => setChosen(target.value)}>
          {since.toReversed().map((each) => (
            <option key={each.message} value={each.message}>
              {each === last ? texts.lastMessage(each.text) : texts.message(each.text)}
            </option>
          ))}
        </select>
      </label>
      {problem !== '' && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      {diff === undefined && problem === '' && <p className="dim">{texts.loading}</p>}
      {diff !== undefined && files.length === 0 && <p className="dim">{texts.none}</p>}
      {files.length > MAX_SHOWN_FILES && <p className="dim">{texts.manyFiles(MAX_SHOWN_FILES)}</p>}
      {diff !== undefined &&
        files
          .slice(0, MAX_SHOWN_FILES)
          .map((file, at) => (
            <ChangedFile
              key={file.path}
              sandbox={sandbox}
              diff={diff}
              file={file}
              isOpenAtFirst={at < MAX_OPEN_FILES}
              comments={comments}
              change={change}
            />
          ))}
      {comments.length > 0 && (
        <button type="button" className="primary patch-send" onClick={send}>
          {texts.send(comments.length)}
        </button>
      )}
    </div>
  )
}
