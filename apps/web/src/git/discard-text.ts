import type { GitFile } from '../api/git.ts'
import { readChangedPath } from './changed-path.ts'

/** What a person is asked before changes are lost. */
export interface DiscardText {
  readonly title: string
  /** What becomes of the files, a sentence each. */
  readonly losses: readonly string[]
  readonly yes: string
}

function count(number: number, one: string, many: string): string {
  return number === 1 ? one : `${number} ${many}`
}

/** Says what is lost: files that git knows go back to what is staged, new files and whole new folders are deleted. */
export function discardText(files: readonly GitFile[]): DiscardText {
  const fresh = files.filter(({ kind }) => kind === 'untracked')
  const folders = fresh.filter(({ path }) => readChangedPath(path).isFolder).length
  const newFiles = fresh.length - folders
  const changed = files.length - fresh.length
  const deleted = [
    ...(newFiles === 0 ? [] : [count(newFiles, 'one new file', 'new files')]),
    ...(folders === 0
      ? []
      : [count(folders, 'one new folder with everything in it', 'new folders with everything in them')]),
  ].join(' and ')
  return {
    title: titleOf({ changed, newFiles, folders }),
    losses: [
      ...(changed === 0
        ? []
        : [`What was changed in ${count(changed, 'one file', 'files')} and not staged is gone for good.`]),
      ...(deleted === ''
        ? []
        : [`Deleted for good: ${deleted}. Git has no copy of what it was never given.`]),
    ],
    yes: changed === 0 ? 'Delete' : 'Discard',
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
    return `Discard changes in ${count(all, 'this file', folders > 0 ? 'files and folders' : 'files')}?`
  if (folders === 0) return `Delete ${count(newFiles, 'this new file', 'new files')}?`
  if (newFiles === 0) return `Delete ${count(folders, 'this new folder', 'new folders')}?`
  return `Delete ${all} new files and folders?`
}
