import { useStore } from '@sandwire/react'
import { useCallback, useEffect, useMemo, useState } from 'react'
import { findRepositories } from '../api/git.ts'
import { ROOT } from '../files/paths.ts'
import { useParts } from '../state/context.ts'
import { AccountTexts } from './account-storage.ts'

/** Which of the repositories is shown: the one that was chosen if it is still there, the workspace's own, or the first. */
export function chooseRepository(found: readonly string[], chosen: string | undefined): string {
  if (chosen !== undefined && found.includes(chosen)) return chosen
  return found.includes(ROOT) ? ROOT : (found[0] ?? ROOT)
}

/** Whether there is anything to choose, or to say of the one that is shown. */
export function needsChooser(found: readonly string[]): boolean {
  return found.length > 1 || (found.length === 1 && found[0] !== ROOT)
}

/** Levels below the workspace that repositories are looked for in. */
const MAX_DEPTH = 2

/** Whether what changed may be a repository that came or went: one, or a folder that it could lie in. */
export function mayBeRepository(paths: readonly string[]): boolean {
  return paths.some((path) => {
    const names = path.split('/')
    const depth = names.at(-1) === '.git' ? names.length - 1 : names.length
    return depth <= MAX_DEPTH && !names.slice(0, -1).includes('.git')
  })
}

const CHOSEN_KEY = 'sandwire.repositories'
/** Changes settle for so long before repositories are looked for again: a clone takes its time. */
const SETTLE_MS = 500

/** The repositories of a sandbox, and the one that this browser shows. */
interface FoundRepositories {
  /** Undefined: not known yet. */
  readonly found: readonly string[] | undefined
  readonly repo: string
  readonly choose: (repo: string) => void
  readonly refresh: () => void
}

export function useRepositories(sandbox: string): FoundRepositories {
  const { workbench, watch } = useParts()
  const person = useStore(workbench.person)
  const account = person.is === 'ready' ? (person.value?.account ?? '') : ''
  const kept = useMemo(() => new AccountTexts(localStorage, CHOSEN_KEY, account), [account])
  const [found, setFound] = useState<readonly string[]>()
  const [chosen, setChosen] = useState(() => kept.read(sandbox))
  const refresh = useCallback(() => {
    findRepositories(sandbox).then(setFound, () => {
      // What was found stays; otherwise git itself says what is wrong with the workspace.
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
    kept.keep(sandbox, repo)
  }
  return { found, repo: chooseRepository(found ?? [], chosen), choose, refresh }
}
