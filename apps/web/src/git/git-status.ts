import { createStore, type Store } from '@sandwire/client'
import type { GitFile, GitRepository, GitStatus } from '../api/git.ts'
import { ApiError, isUnreachable } from '../api/request.ts'
import { displayName } from '../files/display-name.ts'
import { ROOT } from '../files/paths.ts'
import type { View } from '../layout/layout.ts'
import { Refetch } from '../state/refetch.ts'
import { messageOf } from '../state/workbench.ts'
import { gitTexts } from '../texts/git.ts'

/** What the panel knows of a repository. */
type GitState =
  | { readonly kind: 'loading' }
  | { readonly kind: 'none' }
  /** The sandbox has no git program. */
  | { readonly kind: 'no-git' }
  | { readonly kind: 'failed'; readonly message: string }
  /** The last known status; `isOld` while the server is unreachable. */
  | { readonly kind: 'ready'; readonly status: GitStatus; readonly isStale: boolean }

/** Changed files by what can be done with them. */
export interface GitGroups {
  readonly conflicts: readonly GitFile[]
  readonly staged: readonly GitFile[]
  /** Unstaged changes, including untracked files. */
  readonly unstaged: readonly GitFile[]
}

export function groupFiles(files: readonly GitFile[]): GitGroups {
  return {
    conflicts: files.filter(({ kind }) => kind === 'conflict'),
    staged: files.filter((file) => file.kind === 'changed' && file.staged !== null),
    unstaged: files.filter(
      (file) => file.kind === 'untracked' || (file.kind === 'changed' && file.unstaged !== null),
    ),
  }
}

/** Git's status letter of a file in a group, with its description. */
export function markOf(
  file: GitFile,
  group: keyof GitGroups,
): { readonly letter: string; readonly description: string } {
  if (file.kind === 'conflict') return { letter: '!', description: gitTexts.changes.conflict }
  const letter = file.kind === 'untracked' ? 'U' : ((group === 'staged' ? file.staged : file.unstaged) ?? 'M')
  return { letter, description: gitTexts.changes[letter] }
}

/** The former path of a renamed or copied file. */
export function originOf(file: GitFile, group: keyof GitGroups): string | undefined {
  const { letter } = markOf(file, group)
  return file.kind === 'changed' && (letter === 'R' || letter === 'C') ? file.from : undefined
}

/** The paths that are staged or unstaged together: a rename includes the former path. */
export function pathsOf(file: GitFile, group: keyof GitGroups): readonly string[] {
  const origin = originOf(file, group)
  return origin === undefined || markOf(file, group).letter === 'C' ? [file.path] : [file.path, origin]
}

/** The status of one repository, reloaded on demand. */
export class GitWatch {
  readonly #read: () => Promise<GitStatus>
  readonly #state = createStore<GitState>({ kind: 'loading' })
  readonly #refetch = new Refetch(async () => this.#state.set(await this.#load()))

  constructor(read: () => Promise<GitStatus>) {
    this.#read = read
  }

  get state(): Store<GitState> {
    return this.#state
  }

  refresh(): Promise<void> {
    return this.#refetch.run()
  }

  async #load(): Promise<GitState> {
    try {
      return { kind: 'ready', status: await this.#read(), isStale: false }
    } catch (caught) {
      const known = this.#state.get()
      // Keeps the panel usable while the server is unreachable.
      if (known.kind === 'ready' && isUnreachable(caught)) return { ...known, isStale: true }
      if (caught instanceof ApiError && caught.code === 'not_a_repository') return { kind: 'none' }
      if (caught instanceof ApiError && caught.code === 'command_not_found') return { kind: 'no-git' }
      return { kind: 'failed', message: messageOf(caught) }
    }
  }
}

/** A path for a row: its name, and its folder unless that is the root. */
interface ChangedPath {
  readonly name: string
  readonly folder: string | undefined
  /** Git reports an untracked folder with a trailing slash. */
  readonly isFolder: boolean
}

/** A rename, with only the name when the folder is the same. */
export function formatRename(from: string, to: string): string {
  const [old, now] = [parseChangedPath(from), parseChangedPath(to)]
  return old.folder === now.folder
    ? `${displayName(old.name)} → ${displayName(now.name)}`
    : `${displayName(from)} → ${displayName(now.name)}`
}

export function parseChangedPath(path: string): ChangedPath {
  const isFolder = path.endsWith('/')
  const plain = isFolder ? path.slice(0, -1) : path
  const at = plain.lastIndexOf('/')
  return { name: plain.slice(at + 1), folder: at === -1 ? undefined : plain.slice(0, at), isFolder }
}

type DiffView = Extract<View, { kind: 'diff' }>

/** The view of a diff in a repository. */
export function diffView(
  { sandbox, repo }: GitRepository,
  what: Pick<DiffView, 'path' | 'of'> & { readonly from: string | undefined },
): DiffView {
  const { path, of, from } = what
  return {
    kind: 'diff',
    sandbox,
    path,
    of,
    ...(repo === ROOT ? {} : { repo }),
    ...(from === undefined ? {} : { from }),
  }
}
