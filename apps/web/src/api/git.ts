import { ApiError, request, requestJson } from './request.ts'
import { workspaceUrl } from './workspace.ts'

/** Modified, type changed, added, deleted, renamed, copied. */
export type Change = 'M' | 'T' | 'A' | 'D' | 'R' | 'C'

export type GitFile =
  | {
      readonly kind: 'changed'
      readonly path: string
      readonly staged: Change | null
      readonly unstaged: Change | null
      readonly from?: string
    }
  | { readonly kind: 'conflict'; readonly path: string; readonly sides: string }
  | { readonly kind: 'untracked'; readonly path: string }

export interface GitStatus {
  readonly head: {
    readonly oid?: string
    readonly branch?: string
    readonly upstream?: string
    readonly ahead?: number
    readonly behind?: number
  }
  /** The operation in progress, such as `merge`. */
  readonly state: string | null
  readonly files: readonly GitFile[]
  readonly truncated: boolean
  /** False when untracked files were not searched for. */
  readonly untracked: boolean
}

export interface GitCommit {
  readonly oid: string
  readonly parents: readonly string[]
  readonly author: { readonly name: string; readonly timeMs: number }
  readonly refs: readonly string[]
  readonly message: string
}

export interface GitDiff {
  readonly files: readonly {
    readonly path: string
    readonly from?: string
    readonly status: string
    readonly added: number
    readonly removed: number
    readonly binary: boolean
  }[]
  /** Unified diff. */
  readonly diff: string
  readonly lossy: boolean
  readonly truncated: false | string
}

export interface GitBranches {
  readonly head: { readonly branch?: string; readonly oid?: string }
  readonly branches: readonly {
    readonly name: string
    readonly kind: 'local' | 'remote'
    readonly subject: string
  }[]
}

/** A repository by its folder in the workspace; "." for the workspace itself. */
export interface GitRepository {
  readonly sandbox: string
  readonly repo: string
}

type Parameters = Readonly<Record<string, string | number | boolean | undefined>>

function gitUrl({ sandbox, repo }: GitRepository, tail: string, parameters: Parameters = {}): string {
  return workspaceUrl(sandbox, `git/${tail}`, { ...parameters, repo: repo === '.' ? undefined : repo })
}

/** Lists the folders of a workspace that hold a repository. */
export async function findRepositories(sandbox: string): Promise<readonly string[]> {
  const { repositories } = await requestJson<{ repositories: readonly { path: string }[] }>(
    workspaceUrl(sandbox, 'git/repositories'),
  )
  return repositories.map(({ path }) => path)
}

export function readStatus(repository: GitRepository): Promise<GitStatus> {
  return requestJson<GitStatus>(gitUrl(repository, 'status'))
}

/** Reads a diff. `to` alone compares a commit with its parent; `old` is the former path of a renamed file. */
export function readDiff(
  repository: GitRepository,
  parameters: {
    readonly path?: string
    readonly old?: string | undefined
    readonly staged?: boolean
    readonly to?: string
  },
): Promise<GitDiff> {
  return requestJson<GitDiff>(gitUrl(repository, 'diff', parameters))
}

/** Reads a file's text at a commit; undefined when it is not text or was truncated. */
export async function showText(
  repository: GitRepository,
  path: string,
  ref: string,
): Promise<string | undefined> {
  const shown = await requestJson<{ encoding: string; content: string; truncated: boolean }>(
    gitUrl(repository, 'show', { path, ref }),
  )
  return shown.encoding === 'utf-8' && !shown.truncated ? shown.content : undefined
}

export function readLog(
  repository: GitRepository,
  after?: string,
): Promise<{ readonly commits: readonly GitCommit[]; readonly truncated: boolean }> {
  return requestJson(gitUrl(repository, 'log', { limit: 50, after }))
}

export function readBranches(repository: GitRepository): Promise<GitBranches> {
  return requestJson<GitBranches>(gitUrl(repository, 'branches'))
}

async function change({ sandbox, repo }: GitRepository, verb: string, parameters: object): Promise<void> {
  await request(workspaceUrl(sandbox, `git/${verb}`), { method: 'POST', json: { ...parameters, repo } })
}

export function stage(repository: GitRepository, paths: readonly string[]): Promise<void> {
  return change(repository, 'stage', { paths })
}

export function unstage(repository: GitRepository, paths: readonly string[]): Promise<void> {
  return change(repository, 'unstage', { paths })
}

/** Discards changes; with `untracked`, deletes untracked files too. */
export function discard(
  repository: GitRepository,
  paths: readonly string[],
  untracked: boolean,
): Promise<void> {
  return change(repository, 'discard', { paths, ...(untracked ? { untracked } : {}) })
}

/** The author of a commit. */
export interface Author {
  readonly name: string
  readonly email: string
}

/** Commits what is staged, as git's configured author unless one is given. */
export function commit(repository: GitRepository, message: string, author?: Author): Promise<void> {
  return change(repository, 'commit', { message, ...(author === undefined ? {} : { author }) })
}

/** True when a commit failed because neither git nor the request names an author. */
export function lacksAuthor(caught: unknown): boolean {
  return caught instanceof ApiError && caught.code === 'git_failed' && caught.reason === 'author_unknown'
}
