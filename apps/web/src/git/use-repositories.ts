import { useStore } from '@sandwire/react'
import { useCallback, useEffect, useMemo, useState } from 'react'
import { findRepositories } from '../api/git.ts'
import { ROOT } from '../files/paths.ts'
import { useParts } from '../state/context.ts'
import { chooseRepository, mayBeRepository } from './choose-repository.ts'
import { KeptTexts } from './kept-texts.ts'

const CHOSEN_KEY = 'sandwire.repositories'
/** Changes settle for so long before repositories are looked for again: a clone takes its time. */
const SETTLE_MS = 500

/** The repositories of a sandbox, and the one that this browser shows. */
export interface FoundRepositories {
  /** Undefined: not known yet. */
  readonly found: readonly string[] | undefined
  readonly repo: string
  readonly choose: (repo: string) => void
  readonly look: () => void
}

export function useRepositories(sandbox: string): FoundRepositories {
  const { workbench, watch } = useParts()
  const person = useStore(workbench.person)
  const account = person.is === 'ready' ? (person.value?.account ?? '') : ''
  const kept = useMemo(() => new KeptTexts(localStorage, CHOSEN_KEY, account), [account])
  const [found, setFound] = useState<readonly string[]>()
  const [chosen, setChosen] = useState(() => kept.read(sandbox))
  const look = useCallback(() => {
    findRepositories(sandbox).then(setFound, () => {
      // What was found stays; otherwise git itself says what is wrong with the workspace.
      setFound((old) => old ?? [ROOT])
    })
  }, [sandbox])
  useEffect(() => {
    look()
    let timer: ReturnType<typeof setTimeout> | undefined
    const stop = watch.subscribe(sandbox, (event) => {
      if (event.kind === 'lost' || (event.kind === 'change' && !mayBeRepository(event.paths))) return
      clearTimeout(timer)
      timer = setTimeout(look, SETTLE_MS)
    })
    return () => {
      clearTimeout(timer)
      stop()
    }
  }, [look, watch, sandbox])
  const choose = (repo: string): void => {
    setChosen(repo)
    kept.keep(sandbox, repo)
  }
  return { found, repo: chooseRepository(found ?? [], chosen), choose, look }
}
