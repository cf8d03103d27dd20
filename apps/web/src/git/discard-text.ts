import type { GitFile } from '../api/git.ts'
import { readChangedPath } from './changed-path.ts'
import { gitTexts } from '../texts/git.ts'

/** What a person is asked before changes are lost. */
export interface DiscardText {
  readonly title: string
  /** What becomes of the files, a sentence each. */
  readonly losses: readonly string[]
  readonly yes: string
}

const { discardDialog: texts } = gitTexts

/** Says what is lost: files that git knows go back to what is staged, new files and whole new folders are deleted. */
export function discardText(files: readonly GitFile[]): DiscardText {
  const fresh = files.filter(({ kind }) => kind === 'untracked')
  const folders = fresh.filter(({ path }) => readChangedPath(path).isFolder).length
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
