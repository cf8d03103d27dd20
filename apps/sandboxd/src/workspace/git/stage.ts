import { pathFromBytes, SandwireError } from '@sandwire/protocol'
import { quotePath } from '../beneath/file-error.ts'
import { pathIn } from '../beneath/path.ts'
import { callGit, expectSuccess, type GitCall, readBytes, readTokens } from './git-command.ts'
import { isUnfinished, type Repository } from './repository.ts'

/** Enough to hash what a person chose. */
const CHANGE_MS = 60_000
/** Most that a command says that changes something; nobody reads it. */
const MAX_OUTPUT_BYTES = 64 * 1024

/** Runs what changes something; throws `git_failed`. */
async function change(repository: Repository, call: Omit<GitCall, 'timeMs'>, action: string): Promise<void> {
  const tool = await callGit(repository, { ...call, timeMs: CHANGE_MS })
  await readBytes(tool, MAX_OUTPUT_BYTES)
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
    throw new SandwireError('git_failed', `Cannot stage ${quotePath(path)}: no such file, or git ignores it`)
  // A repository in the folder becomes a part of this one only when it is named.
  return found.isRepository ? [path] : found.untracked
}

/** Puts paths back in the index as the last commit has them; out of it before the first. */
export async function unstage(repository: Repository, paths: readonly string[]): Promise<void> {
  await change(repository, { args: ['reset', '--quiet'], paths }, 'Cannot unstage')
}

/** Enough to look up an attribute of many files. */
const QUERY_MS = 30_000

interface DiscardRequest {
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
    new SandwireError('git_failed', `Cannot discard ${quotePath(path)}: ${why}`)
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
    const tool = await callGit(repository, { args, stdinPaths: files, timeMs: QUERY_MS })
    // A path, the name of the attribute and its value, one after the other.
    const said: string[] = []
    for await (const token of readTokens(tool)) {
      said.push(pathFromBytes(token))
      const [path, , filter] = said
      if (filter === undefined) continue
      if (filters.includes(filter))
        throw new SandwireError(
          'git_failed',
          `Cannot discard ${quotePath(path ?? '')}: a filter would have to bring it back, and none is run`,
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

/** Most files that one request changes. */
const MAX_FILES = 100_000
const SCAN_MS = 60_000

/** What there is at a path, or below it where it is a folder. */
interface Scanned {
  isTracked: boolean
  /** Tracked files that differ from the index, gone ones and those in conflict included. */
  readonly changed: string[]
  /** Files that git neither knows nor ignores. */
  readonly untracked: string[]
  /** It is a repository of its own. */
  isRepository: boolean
}

/** Classes that `ls-files -t` puts before a name: one that is not in the index; changed, removed, and in conflict. */
const UNTRACKED = '?'
const CHANGED = ['C', 'R', 'M']

/**
 * Looks for paths among the files that git knows or could. One that is not there has no entry. This is how paths are
 * matched, and not by git's own patterns: a path is itself, or the folder it is.
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
  // Untracked, git says of it only that it is a folder.
  else if (name === `${path}/`) entry.isRepository = true
}

/** The folders that a path is in, from the outermost; of one that ends in a slash that is itself. */
function foldersOf(path: string): string[] {
  const folders: string[] = []
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) folders.push(path.slice(0, at))
  return folders
}
