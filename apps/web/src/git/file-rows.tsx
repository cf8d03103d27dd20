import { type ReactElement, useEffect, useState } from 'react'
import type { GitFile, GitRepository } from '../api/git.ts'
import { type FolderListing, listFolder } from '../api/workspace.ts'
import { displayName } from '../files/display-name.ts'
import { joinPath } from '../files/paths.ts'
import { Icon, IconButton } from '../shell/icon.tsx'
import { type Loaded, messageOf } from '../state/workbench.ts'
import { gitTexts } from '../texts/git.ts'
import { formatRename, type GitGroups, markOf, originOf, parseChangedPath, pathsOf } from './git-status.ts'

/** The actions of a group of files. */
interface RowActions {
  readonly open: (file: GitFile) => void
  /** Opens a workspace path. */
  readonly openFile: (path: string) => void
  readonly stage?: (paths: readonly string[]) => void
  readonly unstage?: (paths: readonly string[]) => void
  readonly discard?: (files: readonly GitFile[]) => void
}

interface GroupProps {
  readonly repository: GitRepository
  readonly group: keyof GitGroups
  readonly actions: RowActions
}

/** The files of one group. */
export function FileRows({
  title,
  files,
  ...group
}: GroupProps & { readonly title: string; readonly files: readonly GitFile[] }): ReactElement | null {
  if (files.length === 0) return null
  const { stage, unstage, discard } = group.actions
  const paths = files.flatMap((file) => pathsOf(file, group.group))
  return (
    <section aria-label={title}>
      <header className="panel-head">
        <h2>
          {title} ({files.length})
        </h2>
        {discard !== undefined && (
          <IconButton icon="undo" label={gitTexts.discardAll} onClick={() => discard(files)} />
        )}
        {stage !== undefined && (
          <IconButton icon="plus" label={gitTexts.stageAll} onClick={() => stage(paths)} />
        )}
        {unstage !== undefined && (
          <IconButton icon="minus" label={gitTexts.unstageAll} onClick={() => unstage(paths)} />
        )}
      </header>
      <ul className="rows">
        {files.map((file) => (
          <FileRow key={file.path} file={file} {...group} />
        ))}
      </ul>
    </section>
  )
}

function FileRow({
  file,
  repository,
  group,
  actions,
}: GroupProps & { readonly file: GitFile }): ReactElement {
  const [isShown, setShown] = useState(false)
  const { letter, description } = markOf(file, group)
  const { path } = file
  const { name, folder, isFolder } = parseChangedPath(path)
  const origin = originOf(file, group)
  const { open, openFile, stage, unstage, discard } = actions
  return (
    <li>
      <div className="row git-row">
        <button
          type="button"
          className="row-main"
          title={origin === undefined ? displayName(path) : `${displayName(origin)} → ${displayName(path)}`}
          aria-expanded={isFolder ? isShown : undefined}
          onClick={() => (isFolder ? setShown(!isShown) : open(file))}
        >
          {isFolder && <Icon name="folder" />}
          <span className="row-name">
            {origin === undefined ? displayName(name) : formatRename(origin, path)}
          </span>
          <span className="row-note git-folder">{folder === undefined ? '' : displayName(folder)}</span>
          <span
            className={`git-mark mark-${letter === '!' ? 'conflict' : letter}`}
            title={description}
            aria-label={isFolder ? gitTexts.folder(description) : description}
          >
            {letter}
          </span>
        </button>
        {discard !== undefined && (
          <IconButton
            icon="undo"
            label={gitTexts.discard(displayName(path))}
            onClick={() => discard([file])}
          />
        )}
        {stage !== undefined && (
          <IconButton
            icon="plus"
            label={gitTexts.stage(displayName(path))}
            onClick={() => stage(pathsOf(file, group))}
          />
        )}
        {unstage !== undefined && (
          <IconButton
            icon="minus"
            label={gitTexts.unstage(displayName(path))}
            onClick={() => unstage(pathsOf(file, group))}
          />
        )}
      </div>
      {isShown && (
        <NewFolderFiles
          sandbox={repository.sandbox}
          path={joinPath(repository.repo, path.replace(/\/$/, ''))}
          onOpen={openFile}
        />
      )}
    </li>
  )
}

interface FolderProps {
  readonly sandbox: string
  /** Without a trailing slash. */
  readonly path: string
  readonly onOpen: (path: string) => void
}

function useFolder(sandbox: string, path: string): Loaded<FolderListing> {
  const [listing, setListing] = useState<Loaded<FolderListing>>({ kind: 'loading' })
  useEffect(() => {
    let isGone = false
    listFolder(sandbox, path).then(
      (value) => isGone || setListing({ kind: 'ready', value }),
      (caught: unknown) => isGone || setListing({ kind: 'failed', message: messageOf(caught) }),
    )
    return () => {
      isGone = true
    }
  }, [sandbox, path])
  return listing
}

/** Lists an untracked folder, so that the user can review it before staging or deleting it. */
function NewFolderFiles({ sandbox, path, onOpen }: FolderProps): ReactElement {
  const listing = useFolder(sandbox, path)
  if (listing.kind === 'loading') return <p className="git-inside dim">{gitTexts.loading}</p>
  if (listing.kind === 'failed') return <p className="git-inside dim">{listing.message}</p>
  const { entries, truncated } = listing.value
  return (
    <>
      {entries.length === 0 && <p className="git-inside dim">{gitTexts.emptyFolder}</p>}
      <ul className="rows git-inside" aria-label={gitTexts.filesIn(displayName(path))}>
        {entries.map(({ name, kind }) => (
          <NewEntry
            key={name}
            sandbox={sandbox}
            path={`${path}/${name}`}
            name={name}
            isFolder={kind === 'folder'}
            onOpen={onOpen}
          />
        ))}
      </ul>
      {truncated && <p className="git-inside dim">{gitTexts.moreFiles}</p>}
    </>
  )
}

function NewEntry({
  name,
  isFolder,
  ...folder
}: FolderProps & { readonly name: string; readonly isFolder: boolean }): ReactElement {
  const [isShown, setShown] = useState(false)
  return (
    <li>
      <div className="row git-row">
        <button
          type="button"
          className="row-main"
          aria-expanded={isFolder ? isShown : undefined}
          title={displayName(folder.path)}
          onClick={() => (isFolder ? setShown(!isShown) : folder.onOpen(folder.path))}
        >
          <Icon name={isFolder ? 'folder' : 'files'} />
          <span className="row-name">{displayName(name)}</span>
        </button>
      </div>
      {isShown && <NewFolderFiles {...folder} />}
    </li>
  )
}
