import { type ReactElement, useState } from 'react'
import type { GitFile, GitPlace } from '../api/git.ts'
import { joinPath } from '../files/paths.ts'
import { shownName } from '../files/shown-name.ts'
import { Icon } from '../shell/icon.tsx'
import { IconButton } from '../shell/icon-button.tsx'
import { readChangedPath, renamedText } from './changed-path.ts'
import { type GitGroups, markOf, originOf, pathsOf } from './git-state.ts'
import { NewFolderFiles } from './new-folder.tsx'
import { gitTexts } from '../texts/git.ts'

/** What can be done with files of a group. */
export interface RowActions {
  readonly open: (file: GitFile) => void
  /** Opens what is at a path of the workspace. */
  readonly openFile: (path: string) => void
  readonly stage?: (paths: readonly string[]) => void
  readonly unstage?: (paths: readonly string[]) => void
  readonly discard?: (files: readonly GitFile[]) => void
}

interface GroupProps {
  readonly place: GitPlace
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

function FileRow({ file, place, group, actions }: GroupProps & { readonly file: GitFile }): ReactElement {
  const [isShown, setShown] = useState(false)
  const { letter, word } = markOf(file, group)
  const { path } = file
  const { name, folder, isFolder } = readChangedPath(path)
  const origin = originOf(file, group)
  const { open, openFile, stage, unstage, discard } = actions
  return (
    <li>
      <div className="row git-row">
        <button
          type="button"
          className="row-main"
          title={origin === undefined ? shownName(path) : `${shownName(origin)} → ${shownName(path)}`}
          aria-expanded={isFolder ? isShown : undefined}
          onClick={() => (isFolder ? setShown(!isShown) : open(file))}
        >
          {isFolder && <Icon name="folder" />}
          <span className="row-name">
            {origin === undefined ? shownName(name) : renamedText(origin, path)}
          </span>
          <span className="row-note git-folder">{folder === undefined ? '' : shownName(folder)}</span>
          <span
            className={`git-mark mark-${letter === '!' ? 'conflict' : letter}`}
            title={word}
            aria-label={isFolder ? gitTexts.folder(word) : word}
          >
            {letter}
          </span>
        </button>
        {discard !== undefined && (
          <IconButton icon="undo" label={gitTexts.discard(shownName(path))} onClick={() => discard([file])} />
        )}
        {stage !== undefined && (
          <IconButton
            icon="plus"
            label={gitTexts.stage(shownName(path))}
            onClick={() => stage(pathsOf(file, group))}
          />
        )}
        {unstage !== undefined && (
          <IconButton
            icon="minus"
            label={gitTexts.unstage(shownName(path))}
            onClick={() => unstage(pathsOf(file, group))}
          />
        )}
      </div>
      {isShown && (
        <NewFolderFiles
          sandbox={place.sandbox}
          path={joinPath(place.repo, path.replace(/\/$/, ''))}
          onOpen={openFile}
        />
      )}
    </li>
  )
}
