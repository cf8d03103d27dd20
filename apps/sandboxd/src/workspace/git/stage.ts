import { pathFromBytes, SandwireError } from '@sandwire/protocol'
import { quotePath } from '../beneath/file-error.ts'
import { pathIn } from '../beneath/path.ts'
import { callGit, expectSuccess, type GitCall, readTokens } from './git-command.ts'
import { runChange } from './git-locks.ts'
import { isUnfinished, type Repository } from './repository.ts'

/** Timeout of changes, which may hash many files. */
const CHANGE_MS = 60_000

/** Runs a command that changes something; throws `git_failed`. */
async function change(repository: Repository, call: Omit<GitCall, 'timeMs'>, action: string): Promise<void> {
  const { tool } = await runChange(repository, { ...call, timeMs: CHANGE_MS })
  await expectSuccess(tool, action)
}

/**
 * Stages paths, removed ones included; all or none. A file that needs a filter is refused. Uses update-index instead of `git
 * add`, which looks into submodules and runs programs that their configuration names.
 */
export async function stage(repository: Repository, paths: readonly string[]): Promise<void> {
  const found = await scan(repository, paths, 'Cannot stage')
  const added = new Set(paths.flatMap((path) => filesToAdd(path, found.get(path))))
  // Removed paths first: git replaces a removed file by a folder only while it is in the index. Files of a folder that is now
  // a file or link are removed with it and not looked up through the link.
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
    throw new SandwireError('git_failed', `Cannot stage ${quotePath(path)}: no such file, or git ignores it`)
  // A nested repository is added only when it is named itself.
  return found.isRepository ? [path] : found.untracked
}

/** Restores paths in the index from the last commit; removes them before the first commit. */
export async function unstage(repository: Repository, paths: readonly string[]): Promise<void> {
  await change(repository, { args: ['reset', '--quiet'], paths }, 'Cannot unstage')
}

/** Timeout of an attribute lookup for many files. */
const QUERY_MS = 30_000

interface DiscardRequest {
  readonly paths: readonly string[]
  /** Also removes untracked files, and those in a named folder that has no others. */
  readonly untracked: boolean
}

/**
 * Restores files of the work tree from the index; removes untracked files when requested. Everything is checked first: a request
 * that cannot be completed changes nothing. Returns the number of removed files.
 */
export async function discard(repository: Repository, request: DiscardRequest): Promise<number> {
  const { paths } = request
  const found = await scan(repository, paths, 'Cannot discard')
  for (const path of paths) check(path, found.get(path), request)
  const tracked = paths.filter((path) => found.get(path)?.isTracked === true)
  // A file that was not named is removed only with a folder that contains only untracked files.
  const removed = new Set(
    paths.filter((path) => !tracked.includes(path)).flatMap((path) => found.get(path)?.untracked ?? []),
  )
  await checkFilters(repository, [...new Set(tracked.flatMap((path) => found.get(path)?.changed ?? []))])
  const args = ['restore', '--worktree'] as const
  // None of these files needs a filter.
  if (tracked.length > 0) await change(repository, { args, paths: tracked }, 'Cannot discard')
  for (const path of removed) await removeFile(repository, path)
  return removed.size
}

function check(path: string, found: Scanned | undefined, { untracked }: DiscardRequest): void {
  if (found?.isTracked === true) return
  const refuse = (why: string): SandwireError =>
    new SandwireError('git_failed', `Cannot discard ${quotePath(path)}: ${why}`)
  // A nested repository may be the only copy of its work; so is the whole workspace.
  if (found === undefined || found.isRepository || path === '.') throw refuse('git knows no such file')
  if (!untracked) throw refuse('it is untracked, and the request did not ask for those')
}

/**
 * Throws `git_failed` when a file needs a filter to be restored; git notices that only after it has removed the file. Attributes
 * are read from the index and from the work tree, as git does.
 */
async function checkFilters(repository: Repository, files: readonly string[]): Promise<void> {
  const { filters } = repository.config
  if (files.length === 0 || filters.length === 0) return
  for (const where of [['--cached'], []] as const) {
    const args = ['check-attr', ...where, '-z', '--stdin', 'filter'] as const
    const tool = await callGit(repository, { args, stdinPaths: files, timeMs: QUERY_MS })
    // Triples of path, attribute and value.
    const fields: string[] = []
    for await (const token of readTokens(tool)) {
      fields.push(pathFromBytes(token))
      const [path, , filter] = fields
      if (filter === undefined) continue
      if (filters.includes(filter))
        throw new SandwireError(
          'git_failed',
          `Cannot discard ${quotePath(path ?? '')}: it needs a filter, and filters are not run`,
        )
      fields.length = 0
    }
    await expectSuccess(tool, 'Cannot discard')
  }
}

/** Removes a file and folders that become empty, as git does. */
async function removeFile({ files, path: top }: Repository, path: string): Promise<void> {
  await files.remove(pathIn(top, path), { recursive: false })
  for (let folder = folderOf(path); folder !== ''; folder = folderOf(folder)) {
    try {
      await files.remove(pathIn(top, folder), { recursive: false })
    } catch (caught) {
      if (SandwireError.from(caught).code === 'internal') throw caught
      // Not empty.
      return
    }
  }
}

function folderOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')))
}

/** Maximum number of files per request. */
const MAX_FILES = 100_000
const SCAN_MS = 60_000

/** Files at a path, or below it. */
interface Scanned {
  isTracked: boolean
  /** Tracked files that differ from the index, including removed and conflicting ones. */
  readonly changed: string[]
  /** Files that are neither tracked nor ignored. */
  readonly untracked: string[]
  /** It is a nested repository. */
  isRepository: boolean
}

/** Status tags of `ls-files -t`: untracked; changed, removed and unmerged. */
const UNTRACKED = '?'
const CHANGED = ['C', 'R', 'M']

/**
 * Finds the files that each path stands for: itself, or the files below it. Git's own path patterns are not used. A path without
 * files has no entry.
 */
async function scan(
  repository: Repository,
  paths: readonly string[],
  action: string,
): Promise<ReadonlyMap<string, Scanned>> {
  const wanted = new Set(paths)
  const found = new Map<string, Scanned>()
  const classes = ['--cached', '--modified', '--deleted', '--others', '--exclude-standard'] as const
  const tool = await callGit(repository, { args: ['ls-files', '-t', ...classes, '-z'], timeMs: SCAN_MS })
  let files = 0
  for await (const token of readTokens(tool)) {
    const tag = String.fromCharCode(token[0] ?? 0)
    const name = pathFromBytes(token.subarray(2))
    if (tag === UNTRACKED && isUnfinished(name)) continue
    for (const path of ['.', ...foldersOf(name), name]) {
      if (!wanted.has(path)) continue
      note(entryOf(found, path), { tag, name, path })
      files += tag === UNTRACKED || CHANGED.includes(tag) ? 1 : 0
    }
    if (files > MAX_FILES) throw new SandwireError('git_failed', `${action}: more than ${MAX_FILES} files`)
  }
  await expectSuccess(tool, action)
  return found
}

function entryOf(found: Map<string, Scanned>, path: string): Scanned {
  const known = found.get(path)
  if (known !== undefined) return known
  const entry: Scanned = { isTracked: false, changed: [], untracked: [], isRepository: false }
  found.set(path, entry)
  return entry
}

function note(entry: Scanned, { tag, name, path }: { tag: string; name: string; path: string }): void {
  if (tag !== UNTRACKED) {
    entry.isTracked = true
    if (CHANGED.includes(tag)) entry.changed.push(name)
  } else if (!name.endsWith('/')) entry.untracked.push(name)
  // Git lists an untracked repository as a folder only.
  else if (name === `${path}/`) entry.isRepository = true
}

/** The parent folders of a path, outermost first; a path with a trailing slash includes itself. */
function foldersOf(path: string): string[] {
  const folders: string[] = []
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) folders.push(path.slice(0, at))
  return folders
}
