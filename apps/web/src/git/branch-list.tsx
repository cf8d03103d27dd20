import { printable } from '@sandwire/react'
import { type ReactElement, useEffect, useState } from 'react'
import { type GitBranches, type GitPlace, type GitStatus, readBranches } from '../api/git.ts'
import { useParts } from '../state/context.ts'
import { gitTexts } from '../texts/git.ts'

/** The branches of a repository, the last used first, read again with every status. */
export function BranchList({
  place,
  status,
}: {
  readonly place: GitPlace
  readonly status: GitStatus
}): ReactElement {
  const { workbench } = useParts()
  const [branches, setBranches] = useState<GitBranches>()
  useEffect(() => {
    let isOld = false
    void workbench
      .attempt(gitTexts.branches.cannotList, () => readBranches(place))
      .then((read) => {
        if (read !== undefined && !isOld) setBranches(read)
      })
    return () => {
      isOld = true
    }
  }, [workbench, place, status])
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
