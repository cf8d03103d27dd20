import { useStore } from '@sandwire/react'
import { useCallback, useEffect, useMemo, useState } from 'react'
import { findRepositories } from '../api/git.ts'
import { ROOT } from '../files/paths.ts'
import { useParts } from '../state/context.ts'
import { AccountTexts } from './account-storage.ts'

/** The repository to show: the chosen one if it still exists, the workspace's own, or the first. */
export function chooseRepository(found: readonly string[], chosen: string | undefined): string {
  if (chosen !== undefined && found.includes(chosen)) return chosen
  return found.includes(ROOT) ? ROOT : (found[0] ?? ROOT)
}

/** True when the panel must name or offer repositories. */
export function needsChooser(found: readonly string[]): boolean {
  return found.length > 1 || (found.length === 1 && found[0] !== ROOT)
}

/** Depth to which repositories are searched for. */
const MAX_DEPTH = 2

/** True when changed paths may mean that a repository appeared or disappeared. */
export function mayBeRepository(paths: readonly string[]): boolean {
  return paths.some((path) => {
    const names = path.split('/')
    const depth = names.at(-1) === '.git' ? names.length - 1 : names.length
    return depth <= MAX_DEPTH && !names.slice(0, -1).includes('.git')
  })
}

const CHOSEN_KEY = 'sandwire.repositories'
/** Delay after the last change before repositories are searched for again. */
const SETTLE_MS = 500

/** The repositories of a sandbox, and the selected one. */
interface FoundRepositories {
  /** Undefined until loaded. */
  readonly found: readonly string[] | undefined
  readonly repo: string
  readonly choose: (repo: string) => void
  readonly refresh: () => void
}

export function useRepositories(sandbox: string): FoundRepositories {
  const { workbench, watch } = useParts()
  const user = useStore(workbench.user)
  const account = user.kind === 'ready' ? (user.value?.account ?? '') : ''
  const storedChoices = useMemo(() => new AccountTexts(localStorage, CHOSEN_KEY, account), [account])
  const [found, setFound] = useState<readonly string[]>()
  const [chosen, setChosen] = useState(() => storedChoices.read(sandbox))
  const refresh = useCallback(() => {
    findRepositories(sandbox).then(setFound, () => {
      // Keeps what was found; otherwise the status request reports the problem.
      setFound((old) => old ?? [ROOT])
    })
  }, [sandbox])
  useEffect(() => {
    refresh()
    let timer: ReturnType<typeof setTimeout> | undefined
    const stop = watch.subscribe(sandbox, (event) => {
      if (event.kind === 'lost' || (event.kind === 'change' && !mayBeRepository(event.paths))) return
      clearTimeout(timer)
      timer = setTimeout(refresh, SETTLE_MS)
    })
    return () => {
      clearTimeout(timer)
      stop()
    }
  }, [refresh, watch, sandbox])
  const choose = (repo: string): void => {
    setChosen(repo)
    storedChoices.store(sandbox, repo)
  }
  return { found, repo: chooseRepository(found ?? [], chosen), choose, refresh }
}
