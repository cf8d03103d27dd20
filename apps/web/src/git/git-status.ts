import { createStore, type Store } from '@sandwire/client'
import type { GitFile, GitRepository, GitStatus } from '../api/git.ts'
import { ApiError, isUnreachable } from '../api/request.ts'
import { ROOT } from '../files/paths.ts'
import { displayName } from '../files/shown-name.ts'
import type { View } from '../layout/layout.ts'
import { Refetch } from '../state/refetch.ts'
import { messageOf } from '../state/workbench.ts'
import { gitTexts } from '../texts/git.ts'

/** What the panel knows of a repository. */
type GitState =
  | { readonly is: 'loading' }
  | { readonly is: 'none' }
  /** The sandbox has no git program. */
  | { readonly is: 'no-git' }
  | { readonly is: 'failed'; readonly message: string }
  /** How it was when it was last told; `isOld` while nobody answers. */
  | { readonly is: 'ready'; readonly status: GitStatus; readonly isOld: boolean }

/** Changed files in the order in which they are dealt with. */
export interface GitGroups {
  readonly conflicts: readonly GitFile[]
  readonly staged: readonly GitFile[]
  /** What is not staged, files that git does not know among them. */
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

/** The letter of a file in a group, and the word for it. */
export function markOf(
  file: GitFile,
  group: keyof GitGroups,
): { readonly letter: string; readonly word: string } {
  if (file.kind === 'conflict') return { letter: '!', word: gitTexts.changes.conflict }
  const letter = file.kind === 'untracked' ? 'U' : ((group === 'staged' ? file.staged : file.unstaged) ?? 'M')
  return { letter, word: gitTexts.changes[letter] }
}

/** Where a file of a group was, if it was renamed or copied to where it is. */
export function originOf(file: GitFile, group: keyof GitGroups): string | undefined {
  const { letter } = markOf(file, group)
  return file.kind === 'changed' && (letter === 'R' || letter === 'C') ? file.from : undefined
}

/** What is staged or unstaged as one: a renamed file is so with what went from its old place. */
export function pathsOf(file: GitFile, group: keyof GitGroups): readonly string[] {
  const origin = originOf(file, group)
  return origin === undefined || markOf(file, group).letter === 'C' ? [file.path] : [file.path, origin]
}

/** The state of one repository, read again on demand; requests that overlap become one more. */
export class GitWatch {
  readonly #read: () => Promise<GitStatus>
  readonly #state = createStore<GitState>({ is: 'loading' })
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
      return { is: 'ready', status: await this.#read(), isOld: false }
    } catch (caught) {
      const known = this.#state.get()
      // What somebody sees and types there stays while nobody answers.
      if (known.is === 'ready' && isUnreachable(caught)) return { ...known, isOld: true }
      if (caught instanceof ApiError && caught.code === 'not_a_repository') return { is: 'none' }
      if (caught instanceof ApiError && caught.code === 'command_not_found') return { is: 'no-git' }
      return { is: 'failed', message: messageOf(caught) }
    }
  }
}

/** A path as git tells it, for a row: its own name, and the folder it is in where that is not the root. */
interface ChangedPath {
  readonly name: string
  readonly folder: string | undefined
  /** Git tells a folder of which it knows nothing as one, with a slash at its end. */
  readonly isFolder: boolean
}

/** A path with the one it had before; of two in one folder the first is as short as can be. */
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

/** What a pane needs to show a difference in a repository. */
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
