import { SandwireError } from '@sandwire/protocol'
import { showPath } from '../beneath/show-path.ts'
import { callGit, type GitCall } from './call.ts'
import { expectSuccess, readBytes } from './output.ts'
import type { Repository } from './repository.ts'
import { foldersOf, scan, type Scanned } from './scan.ts'

/** Enough to hash what a person chose. */
const CHANGE_MS = 60_000
/** Most that a command says that changes something; nobody reads it. */
const MAX_SAID_BYTES = 64 * 1024

/** Runs what changes something; throws `git_failed`. */
export async function change(
  repository: Repository,
  call: Omit<GitCall, 'timeMs'>,
  action: string,
): Promise<void> {
  const tool = await callGit(repository, { ...call, timeMs: CHANGE_MS })
  await readBytes(tool, MAX_SAID_BYTES)
  await expectSuccess(tool, action)
}

/**
 * Puts paths into the index as they are, gone ones included; all or none. A file that a filter would have to change is
 * refused. Not by `git add`, which looks into submodules and so runs what their own configuration names.
 */
export async function stage(repository: Repository, paths: readonly string[]): Promise<void> {
  const found = await scan(repository, paths, 'Cannot stage')
  const added = new Set(paths.flatMap((path) => filesToAdd(path, found.get(path))))
  // Gone ones first: git takes a folder for a file that is gone only while it knows the file. What was in a folder that is
  // a file or a link now goes with it, and is not looked for behind the link.
  const changed = paths
    .flatMap((path) => found.get(path)?.changed ?? [])
    .filter((path) => !foldersOf(path).some((folder) => added.has(folder)))
  const files = [...new Set([...changed, ...added])]
  if (files.length === 0) return
  const args = ['update-index', '--add', '--remove', '--replace', '-z', '--stdin'] as const
  await change(repository, { args, stdinPaths: files, filtered: 'refused' }, 'Cannot stage')
}

function filesToAdd(path: string, found: Scanned | undefined): readonly string[] {
  if (found === undefined)
    throw new SandwireError('git_failed', `Cannot stage ${showPath(path)}: no such file, or git ignores it`)
  // A repository in the folder becomes a part of this one only when it is named.
  return found.isRepository ? [path] : found.untracked
}

/** Puts paths back in the index as the last commit has them; out of it before the first. */
export async function unstage(repository: Repository, paths: readonly string[]): Promise<void> {
  await change(repository, { args: ['reset', '--quiet'], paths }, 'Cannot unstage')
}
