import { printable } from '@sandwire/react'
import { type ReactElement, useEffect, useState } from 'react'
import {
  type GitBranches,
  type GitFile,
  type GitRepository,
  type GitStatus,
  readBranches,
  stage,
  unstage,
} from '../api/git.ts'
import { joinPath } from '../files/paths.ts'
import { reveal, type View } from '../layout/layout.ts'
import { usePanelMemory } from '../panels/panel-memory.ts'
import { useParts } from '../state/context.ts'
import { gitTexts } from '../texts/git.ts'
import { CommitBox } from './commit-box.tsx'
import { DiscardDialog, discardFiles } from './discard-dialog.tsx'
import { FileRows } from './file-rows.tsx'
import { diffView, groupFiles, originOf } from './git-status.ts'
import { LogRows } from './log-rows.tsx'

function headText({ head, state }: GitStatus): string {
  const where =
    head.branch ??
    (head.oid === undefined ? gitTexts.noCommitsHead : gitTexts.detachedAt(head.oid.slice(0, 8)))
  const ahead = head.ahead === undefined || head.ahead === 0 ? '' : ` ↑${head.ahead}`
  const behind = head.behind === undefined || head.behind === 0 ? '' : ` ↓${head.behind}`
  return `${printable(where)}${ahead}${behind}${state === null ? '' : gitTexts.inProgress(state)}`
}

/** Branch, changes and commit box of a repository. */
export function Changes({
  repository,
  status,
  refresh,
}: {
  readonly repository: GitRepository
  readonly status: GitStatus
  readonly refresh: () => Promise<void>
}): ReactElement {
  const { workbench } = useParts()
  const [discarding, setDiscarding] = useState<readonly GitFile[]>()
  const { areBranchesOpen, isLogOpen, wasLogOpen, expand } = useExpanded(repository)
  const { conflicts, staged, unstaged } = groupFiles(status.files)
  const act = async (what: string, run: () => Promise<void>): Promise<void> => {
    await workbench.attempt(what, run)
    await refresh()
  }
  const open = (view: View) => workbench.changeLayout((layout) => reveal(layout, view, workbench.mint))
  const openFile = (path: string) => open({ kind: 'file', sandbox: repository.sandbox, path })
  const openDiff =
    (of: 'staged' | 'unstaged') =>
    (file: GitFile): void => {
      if (file.kind === 'changed')
        open(diffView(repository, { path: file.path, of, from: originOf(file, of) }))
      else openFile(joinPath(repository.repo, file.path))
    }
  const stagePaths = (paths: readonly string[]) =>
    void act(gitTexts.cannotStage, () => stage(repository, paths))
  return (
    <>
      <button
        type="button"
        className="branch-line"
        aria-expanded={areBranchesOpen}
        onClick={() => expand({ areBranchesOpen: !areBranchesOpen })}
      >
        {headText(status)}
      </button>
      {areBranchesOpen && <BranchList repository={repository} status={status} />}
      <CommitBox
        repository={repository}
        canCommit={staged.length > 0 && conflicts.length === 0}
        onDone={refresh}
      />
      {status.files.length === 0 && <p className="empty">{gitTexts.noChanges}</p>}
      {!status.untracked && <p className="tree-note dim">{gitTexts.untrackedNotListed}</p>}
      {status.truncated && <p className="tree-note dim">{gitTexts.moreChanges}</p>}
      <FileRows
        repository={repository}
        title={gitTexts.groups.conflicts}
        group="conflicts"
        files={conflicts}
        actions={{
          open: ({ path }) => openFile(joinPath(repository.repo, path)),
          openFile,
          stage: stagePaths,
        }}
      />
      <FileRows
        repository={repository}
        title={gitTexts.groups.staged}
        group="staged"
        files={staged}
        actions={{
          open: openDiff('staged'),
          openFile,
          unstage: (paths) => void act(gitTexts.cannotUnstage, () => unstage(repository, paths)),
        }}
      />
      <FileRows
        repository={repository}
        title={gitTexts.groups.unstaged}
        group="unstaged"
        files={unstaged}
        actions={{ open: openDiff('unstaged'), openFile, stage: stagePaths, discard: setDiscarding }}
      />
      <button
        type="button"
        className="branch-line"
        aria-expanded={isLogOpen}
        onClick={() => expand({ isLogOpen: !isLogOpen })}
      >
        {gitTexts.log.title}
      </button>
      {isLogOpen && (
        <LogRows repository={repository} head={status.head.oid ?? ''} comesIntoView={!wasLogOpen} />
      )}
      {discarding !== undefined && (
        <DiscardDialog
          files={discarding}
          onAnswer={(isYes) => {
            setDiscarding(undefined)
            if (isYes) void act(gitTexts.cannotDiscard, () => discardFiles(repository, discarding))
          }}
        />
      )}
    </>
  )
}

/** The branches, most recently used first; reloaded with every status. */
function BranchList({
  repository,
  status,
}: {
  readonly repository: GitRepository
  readonly status: GitStatus
}): ReactElement {
  const { workbench } = useParts()
  const [branches, setBranches] = useState<GitBranches>()
  useEffect(() => {
    let isStale = false
    void workbench
      .attempt(gitTexts.branches.cannotList, () => readBranches(repository))
      .then((read) => {
        if (read !== undefined && !isStale) setBranches(read)
      })
    return () => {
      isStale = true
    }
  }, [workbench, repository, status])
  if (branches === undefined) return <p className="empty">{gitTexts.loading}</p>
  if (branches.branches.length === 0) return <p className="empty">{gitTexts.branches.none}</p>
  return (
    <ul className="rows" aria-label={gitTexts.branches.title}>
      {branches.branches.map(({ name, kind, subject }) => {
        const isHead = kind === 'local' && name === branches.head.branch
        return (
          <li key={`${kind} ${name}`} className={`row plain ${isHead ? 'current' : ''}`}>
            <span className="row-text branch" title={printable(subject)}>
              {printable(name)}
              <small>
                {isHead ? `${gitTexts.branches.checkedOut} · ` : ''}
                {kind === 'remote' ? `${gitTexts.branches.remote} · ` : ''}
                {printable(subject)}
              </small>
            </span>
          </li>
        )
      })}
    </ul>
  )
}

/** The expanded sections of a repository, remembered while the panel is hidden. */
function useExpanded({ sandbox, repo }: GitRepository): GitPanelState & {
  /** The log was expanded before the panel was shown. */
  readonly wasLogOpen: boolean
  readonly expand: (part: Partial<GitPanelState>) => void
} {
  const saved = usePanelMemory().git.getOrCreate(`${sandbox} ${repo}`, () => ({
    areBranchesOpen: false,
    isLogOpen: false,
  }))
  const [wasLogOpen, setWasLogOpen] = useState(saved.isLogOpen)
  const [shown, setShown] = useState<GitPanelState>({ ...saved })
  const expand = (part: Partial<GitPanelState>): void => {
    Object.assign(saved, part)
    setShown({ ...saved })
    if (part.isLogOpen !== undefined) setWasLogOpen(false)
  }
  return { ...shown, wasLogOpen, expand }
}

/** The expanded sections of a repository. */
export interface GitPanelState {
  areBranchesOpen: boolean
  isLogOpen: boolean
}
