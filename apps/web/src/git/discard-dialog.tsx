import type { ReactElement } from 'react'
import { discard, type GitFile, type GitPlace } from '../api/git.ts'
import { firstNames } from '../files/first-names.ts'
import { Confirm } from '../shell/dialog.tsx'
import { discardText } from './discard-text.ts'

const MAX_SHOWN = 20

/** Files that git knows go back to what is staged; others are deleted, which git is told on its own. */
export async function discardFiles(place: GitPlace, files: readonly GitFile[]): Promise<void> {
  const pathsOf = (isNew: boolean) =>
    files.filter(({ kind }) => (kind === 'untracked') === isNew).map(({ path }) => path)
  const [known, fresh] = [pathsOf(false), pathsOf(true)]
  if (known.length > 0) await discard(place, known, false)
  if (fresh.length > 0) await discard(place, fresh, true)
}

/** Asks before changes are lost. */
export function DiscardDialog({
  files,
  onAnswer,
}: {
  readonly files: readonly GitFile[]
  readonly onAnswer: (isYes: boolean) => void
}): ReactElement {
  const { title, losses, yes } = discardText(files)
  return (
    <Confirm title={title} yes={yes} isDangerous onAnswer={onAnswer}>
      {losses.map((loss) => (
        <p key={loss}>{loss}</p>
      ))}
      <pre className="preview">
        {firstNames(
          files.map(({ path }) => path),
          MAX_SHOWN,
        )}
      </pre>
    </Confirm>
  )
}
