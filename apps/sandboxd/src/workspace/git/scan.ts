import { SandwireError, pathFromBytes } from '@sandwire/protocol'
import { callGit } from './call.ts'
import { isUnfinished } from './names.ts'
import { expectSuccess, readTokens } from './output.ts'
import type { Repository } from './repository.ts'

/** Most files that one request changes. */
const MAX_FILES = 100_000
const SCAN_MS = 60_000

/** What there is at a path, or below it where it is a folder. */
export interface Scanned {
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
export async function scan(
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
export function foldersOf(path: string): string[] {
  const folders: string[] = []
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) folders.push(path.slice(0, at))
  return folders
}
