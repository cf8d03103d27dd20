import { SandwireError } from '@sandwire/protocol'
import { showPath } from '../beneath/show-path.ts'
import { pathIn } from '../path-in.ts'
import type { Repository } from './repository.ts'
import { scan, type Scanned } from './scan.ts'
import { change } from './stage.ts'

export interface DiscardRequest {
  readonly paths: readonly string[]
  /** Untracked files among the paths are removed, and those in a folder among them that holds no others. */
  readonly untracked: boolean
}

/**
 * Puts files of the work tree back as the index has them; untracked ones go for good, when that is asked. Everything is
 * looked at first: a request that cannot be done as a whole changes nothing. Returns how many files were removed.
 */
export async function discard(repository: Repository, request: DiscardRequest): Promise<number> {
  const { paths } = request
  const found = await scan(repository, paths, 'Cannot discard')
  for (const path of paths) check(path, found.get(path), request)
  const tracked = paths.filter((path) => found.get(path)?.isTracked === true)
  // What was not named goes only with a folder that holds nothing git could bring back.
  const removed = new Set(
    paths.filter((path) => !tracked.includes(path)).flatMap((path) => found.get(path)?.untracked ?? []),
  )
  const args = ['restore', '--worktree'] as const
  if (tracked.length > 0)
    await change(repository, { args, paths: tracked, filtered: 'refused' }, 'Cannot discard')
  for (const path of removed) await removeFile(repository, path)
  return removed.size
}

function check(path: string, found: Scanned | undefined, { untracked }: DiscardRequest): void {
  if (found?.isTracked === true) return
  const refuse = (why: string): SandwireError =>
    new SandwireError('git_failed', `Cannot discard ${showPath(path)}: ${why}`)
  // A repository in the folder is somebody's work, of which there may be no other copy; so is all that there is.
  if (found === undefined || found.isRepository || path === '.') throw refuse('git knows no such file')
  if (!untracked) throw refuse('it is untracked, and the request did not ask for those')
}

/** Removes a file, and folders that held nothing else, as git does: it knows no empty ones. */
async function removeFile({ files, path: top }: Repository, path: string): Promise<void> {
  await files.remove(pathIn(top, path), { recursive: false })
  for (let folder = folderOf(path); folder !== ''; folder = folderOf(folder)) {
    try {
      await files.remove(pathIn(top, folder), { recursive: false })
    } catch (caught) {
      if (SandwireError.from(caught).code === 'internal') throw caught
      // Something else is in it.
      return
    }
  }
}

function folderOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')))
}
