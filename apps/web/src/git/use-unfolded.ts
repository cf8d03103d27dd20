import { useState } from 'react'
import type { GitPlace } from '../api/git.ts'
import { usePanelMemory } from '../panels/panel-memory.ts'
import type { KeptGit } from './kept-git.ts'

/** What is unfolded for a repository, as it was left. */
export function useUnfolded({ sandbox, repo }: GitPlace): KeptGit & {
  /** It was unfolded before this panel was shown. */
  readonly wasLogOpen: boolean
  readonly unfold: (part: Partial<KeptGit>) => void
} {
  const kept = usePanelMemory().git.recall(`${sandbox} ${repo}`, () => ({
    areBranchesOpen: false,
    isLogOpen: false,
  }))
  const [wasLogOpen, setWasLogOpen] = useState(kept.isLogOpen)
  const [shown, setShown] = useState<KeptGit>({ ...kept })
  const unfold = (part: Partial<KeptGit>): void => {
    Object.assign(kept, part)
    setShown({ ...kept })
    if (part.isLogOpen !== undefined) setWasLogOpen(false)
  }
  return { ...shown, wasLogOpen, unfold }
}
