import { printable, useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useMemo, useState } from 'react'
import { type GitFile, type GitStatus, readStatus, stage, unstage } from '../api/git.ts'
import { reveal, type View } from '../layout/layout.ts'
import { SandboxGate } from '../panels/sandbox-gate.tsx'
import { IconButton } from '../shell/icon-button.tsx'
import { useParts } from '../state/context.ts'
import { BranchList } from './branch-list.tsx'
import { CommitBox } from './commit-box.tsx'
import { DiscardDialog, discardFiles } from './discard-dialog.tsx'
import { FileRows } from './file-rows.tsx'
import { GitWatch, groupFiles } from './git-state.ts'
import { LogRows } from './log-rows.tsx'

/** Changes settle for so long before git is asked again. */
const SETTLE_MS = 300

/** Git's view of the chosen sandbox. */
export function GitPanel(): ReactElement {
  return (
    <SandboxGate what="what git knows of it">
      {(sandbox) => <Repository key={sandbox} sandbox={sandbox} />}
    </SandboxGate>
  )
}

function useGit(sandbox: string): GitWatch {
  const { watch } = useParts()
  const git = useMemo(() => new GitWatch(() => readStatus(sandbox)), [sandbox])
  useEffect(() => {
    void git.refresh()
    let timer: ReturnType<typeof setTimeout> | undefined
    const stop = watch.subscribe(sandbox, (event) => {
      if (event.kind === 'lost') return
      clearTimeout(timer)
      timer = setTimeout(() => void git.refresh(), SETTLE_MS)
    })
    return () => {
      clearTimeout(timer)
      stop()
    }
  }, [git, watch, sandbox])
  return git
}

function Repository({ sandbox }: { readonly sandbox: string }): ReactElement {
  const git = useGit(sandbox)
  const state = useStore(git.state)
  return (
    <>
      <header className="panel-head">
        <h2>Git</h2>
        <IconButton icon="refresh" label="Look again" onClick={() => void git.refresh()} />
      </header>
      {state.is === 'loading' && <p className="empty">Asking git…</p>}
      {state.is === 'none' && (
        <p className="empty">The workspace is no git repository. Run git init in a terminal.</p>
      )}
      {state.is === 'failed' && <p className="empty">{state.message}</p>}
      {state.is === 'ready' && (
        <Changes sandbox={sandbox} status={state.status} refresh={() => git.refresh()} />
      )}
    </>
  )
}

function headText({ head, state }: GitStatus): string {
  const where = head.branch ?? (head.oid === undefined ? 'no commit yet' : `at ${head.oid.slice(0, 8)}`)
  const ahead = head.ahead === undefined || head.ahead === 0 ? '' : ` ↑${head.ahead}`
  const behind = head.behind === undefined || head.behind === 0 ? '' : ` ↓${head.behind}`
  return `${printable(where)}${ahead}${behind}${state === null ? '' : ` (${state} in progress)`}`
}

function Changes({
  sandbox,
  status,
  refresh,
}: {
  readonly sandbox: string
  readonly status: GitStatus
  readonly refresh: () => Promise<void>
}): ReactElement {
  const { workbench } = useParts()
  const [doomed, setDoomed] = useState<readonly GitFile[]>()
  const [isLogOpen, setLogOpen] = useState(false)
  const [areBranchesOpen, setBranchesOpen] = useState(false)
  const { conflicts, staged, unstaged } = groupFiles(status.files)
  const act = async (what: string, run: () => Promise<void>): Promise<void> => {
    await workbench.attempt(what, run)
    await refresh()
  }
  const open = (view: View) => workbench.changeLayout((layout) => reveal(layout, view, workbench.mint))
  const openDiff =
    (of: 'staged' | 'unstaged') =>
    (file: GitFile): void => {
      const { path, kind } = file
      open(kind === 'changed' ? { kind: 'diff', sandbox, path, of } : { kind: 'file', sandbox, path })
    }
  const stagePaths = (paths: readonly string[]) => void act('Cannot stage', () => stage(sandbox, paths))
  return (
    <>
      <button
        type="button"
        className="branch-line"
        aria-expanded={areBranchesOpen}
        onClick={() => setBranchesOpen(!areBranchesOpen)}
      >
        {headText(status)}
      </button>
      {areBranchesOpen && <BranchList sandbox={sandbox} />}
      <CommitBox sandbox={sandbox} canCommit={staged.length > 0 && conflicts.length === 0} onDone={refresh} />
      {status.files.length === 0 && <p className="empty">Nothing has changed since the last commit.</p>}
      {!status.untracked && (
        <p className="tree-note dim">New files were not looked for: it would take too long.</p>
      )}
      {status.truncated && <p className="tree-note dim">There are more changes than are shown.</p>}
      <FileRows
        sandbox={sandbox}
        title="In conflict"
        group="conflicts"
        files={conflicts}
        actions={{ open: ({ path }) => open({ kind: 'file', sandbox, path }), stage: stagePaths }}
      />
      <FileRows
        sandbox={sandbox}
        title="Staged"
        group="staged"
        files={staged}
        actions={{
          open: openDiff('staged'),
          unstage: (paths) => void act('Cannot unstage', () => unstage(sandbox, paths)),
        }}
      />
      <FileRows
        sandbox={sandbox}
        title="Changes"
        group="unstaged"
        files={unstaged}
        actions={{ open: openDiff('unstaged'), stage: stagePaths, discard: setDoomed }}
      />
      <button
        type="button"
        className="branch-line"
        aria-expanded={isLogOpen}
        onClick={() => setLogOpen(!isLogOpen)}
      >
        Log
      </button>
      {isLogOpen && <LogRows sandbox={sandbox} head={status.head.oid ?? ''} />}
      {doomed !== undefined && (
        <DiscardDialog
          files={doomed}
          onAnswer={(isYes) => {
            setDoomed(undefined)
            if (isYes) void act('Cannot discard', () => discardFiles(sandbox, doomed))
          }}
        />
      )}
    </>
  )
}
