import { useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useMemo, useState } from 'react'
import { type GitRepository, readStatus } from '../api/git.ts'
import { displayName } from '../files/display-name.ts'
import { ROOT } from '../files/paths.ts'
import { SandboxGate } from '../panels/sandbox-gate.tsx'
import { IconButton } from '../shell/icon.tsx'
import { useSandboxName } from '../shell/titles.ts'
import { useParts } from '../state/context.ts'
import { gitTexts } from '../texts/git.ts'
import { sandboxTexts } from '../texts/sandboxes.ts'
import { Changes } from './changes.tsx'
import { GitWatch } from './git-status.ts'
import { needsChooser, useRepositories } from './repositories.ts'

/** Delay after the last change before the status is reloaded. */
const SETTLE_MS = 300
/** Retry interval while the server is unreachable. */
const AWAY_MS = 3_000

/** Git in the selected sandbox. */
export function GitPanel(): ReactElement {
  return (
    <SandboxGate action={sandboxTexts.gate.changes}>
      {(sandbox) => <Repositories key={sandbox} sandbox={sandbox} />}
    </SandboxGate>
  )
}

function useGit(repository: GitRepository): GitWatch {
  const { watch } = useParts()
  const git = useMemo(() => new GitWatch(() => readStatus(repository)), [repository])
  useEffect(() => {
    void git.refresh()
    let timer: ReturnType<typeof setTimeout> | undefined
    const stop = watch.subscribe(repository.sandbox, (event) => {
      if (event.kind === 'lost') return
      clearTimeout(timer)
      timer = setTimeout(() => void git.refresh(), SETTLE_MS)
    })
    return () => {
      clearTimeout(timer)
      stop()
    }
  }, [git, watch, repository])
  return git
}

function Repositories({ sandbox }: { readonly sandbox: string }): ReactElement {
  const { found, repo, choose, refresh } = useRepositories(sandbox)
  const name = useSandboxName(sandbox)
  const [refreshes, setRefreshes] = useState(0)
  return (
    <>
      <header className="panel-head">
        <h2>
          {gitTexts.title}
          <span className="git-sandbox">{name}</span>
        </h2>
        <IconButton
          icon="refresh"
          label={gitTexts.refresh}
          onClick={() => {
            refresh()
            setRefreshes(refreshes + 1)
          }}
        />
      </header>
      {found === undefined && <p className="empty">{gitTexts.loading}</p>}
      {found !== undefined && needsChooser(found) && (
        <label className="repository-line">
          <span>{gitTexts.repository}</span>
          <select value={repo} onChange={(event) => choose(event.target.value)}>
            {found.map((path) => (
              <option key={path} value={path}>
                {path === ROOT ? gitTexts.workspace : displayName(path)}
              </option>
            ))}
          </select>
        </label>
      )}
      {found !== undefined && <Repository key={repo} sandbox={sandbox} repo={repo} refreshes={refreshes} />}
    </>
  )
}

function Repository({
  sandbox,
  repo,
  refreshes,
}: GitRepository & {
  /** Increases when the panel is refreshed. */ readonly refreshes: number
}): ReactElement {
  const repository = useMemo(() => ({ sandbox, repo }), [sandbox, repo])
  const git = useGit(repository)
  const state = useStore(git.state)
  useEffect(() => {
    if (refreshes > 0) void git.refresh()
  }, [git, refreshes])
  useEffect(() => {
    if (state.kind !== 'ready' || !state.isStale) return undefined
    const timer = setTimeout(() => void git.refresh(), AWAY_MS)
    return () => clearTimeout(timer)
  }, [git, state])
  switch (state.kind) {
    case 'loading':
      return <p className="empty">{gitTexts.loading}</p>
    case 'none':
      return <p className="empty">{gitTexts.noRepository}</p>
    case 'no-git':
      return <p className="empty">{gitTexts.notInstalled}</p>
    case 'failed':
      return <p className="empty">{state.message}</p>
    case 'ready':
      return (
        <>
          {state.isStale && (
            <p className="git-old" role="status">
              {gitTexts.unreachable}
            </p>
          )}
          <Changes repository={repository} status={state.status} refresh={() => git.refresh()} />
        </>
      )
  }
}
