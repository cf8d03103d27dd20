import { SandwireError, pathFromBytes } from '@sandwire/protocol'
import { showPath } from '../beneath/show-path.ts'
import { pathIn } from '../path-in.ts'
import { callGit } from './call.ts'
import { expectSuccess, readTokens } from './output.ts'
import type { Repository } from './repository.ts'
import { scan, type Scanned } from './scan.ts'
import { change } from './stage.ts'

/** Enough to look up an attribute of many files. */
const LOOK_MS = 30_000

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
  await checkFilters(repository, [...new Set(tracked.flatMap((path) => found.get(path)?.changed ?? []))])
  const args = ['restore', '--worktree'] as const
  // None of them takes a filter; for others, which git only looks at, none is needed.
  if (tracked.length > 0) await change(repository, { args, paths: tracked }, 'Cannot discard')
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

/**
 * Throws `git_failed` when a filter would have to bring a file back. Git notices that only when it has removed the file. Attributes
 * are read in both places that git takes them from: the index, and the work tree where that has none.
 */
async function checkFilters(repository: Repository, files: readonly string[]): Promise<void> {
  const { filters } = repository.config
  if (files.length === 0 || filters.length === 0) return
  for (const where of [['--cached'], []] as const) {
    const args = ['check-attr', ...where, '-z', '--stdin', 'filter'] as const
    const tool = await callGit(repository, { args, stdinPaths: files, timeMs: LOOK_MS })
    // A path, the name of the attribute and its value, one after the other.
    const said: string[] = []
    for await (const token of readTokens(tool)) {
      said.push(pathFromBytes(token))
      const [path, , filter] = said
      if (filter === undefined) continue
      if (filters.includes(filter))
        throw new SandwireError(
          'git_failed',
          `Cannot discard ${showPath(path ?? '')}: a filter would have to bring it back, and none is run`,
        )
      said.length = 0
    }
    await expectSuccess(tool, 'Cannot discard')
  }
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
