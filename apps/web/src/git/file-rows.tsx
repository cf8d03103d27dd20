import type { ReactElement } from 'react'
import type { GitFile } from '../api/git.ts'
import { shownName } from '../files/shown-name.ts'
import { IconButton } from '../shell/icon-button.tsx'
import { baseName } from '../shell/view-title.ts'
import { type GitGroups, markOf } from './git-state.ts'

/** What can be done with files of a group. */
export interface RowActions {
  readonly open: (file: GitFile) => void
  readonly stage?: (paths: readonly string[]) => void
  readonly unstage?: (paths: readonly string[]) => void
  readonly discard?: (files: readonly GitFile[]) => void
}

/** The files of one group. */
export function FileRows({
  title,
  group,
  files,
  actions,
}: {
  readonly title: string
  readonly group: keyof GitGroups
  readonly files: readonly GitFile[]
  readonly actions: RowActions
}): ReactElement | null {
  if (files.length === 0) return null
  const { open, stage, unstage, discard } = actions
  const paths = files.map(({ path }) => path)
  return (
    <section aria-label={title}>
      <header className="panel-head">
        <h2>
          {title} ({files.length})
        </h2>
        {discard !== undefined && (
          <IconButton icon="undo" label="Discard all of these" onClick={() => discard(files)} />
        )}
        {stage !== undefined && (
          <IconButton icon="plus" label="Stage all of these" onClick={() => stage(paths)} />
        )}
        {unstage !== undefined && (
          <IconButton icon="minus" label="Unstage all of these" onClick={() => unstage(paths)} />
        )}
      </header>
      <ul className="rows">
        {files.map((file) => {
          const { letter, word } = markOf(file, group)
          const { path } = file
          return (
            <li key={path} className="row git-row">
              <button type="button" className="row-main" title={shownName(path)} onClick={() => open(file)}>
                <span className="row-name">{shownName(baseName(path.replace(/\/$/, '')))}</span>
                <span className="row-note git-folder">{shownName(path)}</span>
                <span
                  className={`git-mark mark-${letter === '!' ? 'conflict' : letter}`}
                  title={word}
                  aria-label={word}
                >
                  {letter}
                </span>
              </button>
              {discard !== undefined && (
                <IconButton
                  icon="undo"
                  label={`Discard ${shownName(path)}`}
                  onClick={() => discard([file])}
                />
              )}
              {stage !== undefined && (
                <IconButton icon="plus" label={`Stage ${shownName(path)}`} onClick={() => stage([path])} />
              )}
              {unstage !== undefined && (
                <IconButton
                  icon="minus"
                  label={`Unstage ${shownName(path)}`}
                  onClick={() => unstage([path])}
                />
              )}
            </li>
          )
        })}
      </ul>
    </section>
  )
}
