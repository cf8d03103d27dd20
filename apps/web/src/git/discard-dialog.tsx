import type { ReactElement } from 'react'
import { discard, type GitFile, type GitRepository } from '../api/git.ts'
import { formatPaths } from '../files/display-name.ts'
import { Confirm } from '../shell/dialog.tsx'
import { gitTexts } from '../texts/git.ts'
import { parseChangedPath } from './git-status.ts'

const MAX_SHOWN = 20

/** Restores tracked files to what is staged, and deletes untracked ones with a request of their own. */
export async function discardFiles(repository: GitRepository, files: readonly GitFile[]): Promise<void> {
  const pathsOf = (isNew: boolean) =>
    files.filter(({ kind }) => (kind === 'untracked') === isNew).map(({ path }) => path)
  const [known, fresh] = [pathsOf(false), pathsOf(true)]
  if (known.length > 0) await discard(repository, known, false)
  if (fresh.length > 0) await discard(repository, fresh, true)
}

/** Confirms that changes are discarded. */
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
        {formatPaths(
          files.map(({ path }) => path),
          MAX_SHOWN,
        )}
      </pre>
    </Confirm>
  )
}

/** The texts of the confirmation. */
interface DiscardText {
  readonly title: string
  /** What happens to the files, one sentence each. */
  readonly losses: readonly string[]
  readonly yes: string
}

const { discardDialog: texts } = gitTexts

/** Describes the loss: tracked files are restored to what is staged; new files and folders are deleted. */
export function discardText(files: readonly GitFile[]): DiscardText {
  const fresh = files.filter(({ kind }) => kind === 'untracked')
  const folders = fresh.filter(({ path }) => parseChangedPath(path).isFolder).length
  const newFiles = fresh.length - folders
  const changed = files.length - fresh.length
  const deleted = [
    ...(newFiles === 0 ? [] : [texts.newFiles(newFiles)]),
    ...(folders === 0 ? [] : [texts.foldersWithContents(folders)]),
  ].join(texts.and)
  return {
    title: titleOf({ changed, newFiles, folders }),
    losses: [
      ...(changed === 0 ? [] : [texts.changesLost(changed)]),
      ...(deleted === '' ? [] : [texts.deleted(deleted)]),
    ],
    yes: changed === 0 ? texts.delete : texts.discard,
  }
}

function titleOf(of: {
  readonly changed: number
  readonly newFiles: number
  readonly folders: number
}): string {
  const { changed, newFiles, folders } = of
  const all = changed + newFiles + folders
  if (changed > 0)
    return texts.title(
      all === 1 ? texts.thisFile : folders > 0 ? texts.filesAndFolders(all) : texts.files(all),
    )
  if (folders === 0) return texts.deleteTitle(newFiles === 1 ? texts.thisNewFile : texts.newFiles(newFiles))
  if (newFiles === 0)
    return texts.deleteTitle(folders === 1 ? texts.thisNewFolder : texts.newFolders(folders))
  return texts.deleteTitle(texts.newFilesAndFolders(all))
}
