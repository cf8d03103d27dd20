import type { GitFailureReason } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { callGit, expectSuccess, readBytes } from './git-command.ts'
import { runChange } from './git-locks.ts'
import { readProgress, type Repository, requireCommit } from './repository.ts'

export interface CommitRequest {
  readonly message: string
  /** Default: the configured identity. */
  readonly author?: { readonly name: string; readonly email: string } | undefined
  /** Replaces the last commit. */
  readonly amend: boolean
}

/**
 * The message is used as written. Whether there is something to commit is checked before, because git itself would look into
 * submodules and run programs that their configuration names.
 */
const OPTIONS = ['--quiet', '--file=-', '--cleanup=whitespace', '--no-status', '--allow-empty'] as const
const COMMIT_MS = 60_000
const MAX_OUTPUT_BYTES = 64 * 1024

/** The new commit, or why git refused it. */
type CommitResult = { readonly oid: string } | { readonly reason: GitFailureReason }

/** Commits what is staged. Throws `git_failed` for failures without a reason of their own. */
export async function commit(
  repository: Repository,
  { message, author, amend }: CommitRequest,
): Promise<CommitResult> {
  if (!amend && !(await hasSomethingToCommit(repository)))
    throw new SandwireError('git_failed', 'Cannot commit: nothing is staged')
  const env = identityEnv(author, repository.config.hasIdentity)
  const { tool, status } = await runChange(repository, {
    args: ['commit', ...OPTIONS, ...amendOptions(amend, author)],
    stdin: new TextEncoder().encode(message),
    env,
    timeMs: COMMIT_MS,
  })
  const { code, isLate } = status
  if (code !== 0 && !isLate && !(await hasIdentity(repository, env))) return { reason: 'author_unknown' }
  await expectSuccess(tool, 'Cannot commit')
  return { oid: await requireCommit(repository, 'HEAD') }
}

/** True when git can name the author and the committer. `git var` exits with an error otherwise. */
async function hasIdentity(repository: Repository, env: Record<string, string>): Promise<boolean> {
  for (const name of ['GIT_AUTHOR_IDENT', 'GIT_COMMITTER_IDENT']) {
    const tool = await callGit(repository, { args: ['var', name], env, timeMs: COMMIT_MS })
    await readBytes(tool, MAX_OUTPUT_BYTES)
    if ((await tool.exited).code !== 0) return false
  }
  return true
}

/** True when something is staged or a merge is in progress. */
async function hasSomethingToCommit(repository: Repository): Promise<boolean> {
  const args = [
    'diff',
    '--cached',
    '--quiet',
    '--no-ext-diff',
    '--no-textconv',
    '--ignore-submodules=none',
  ] as const
  const tool = await callGit(repository, { args, timeMs: COMMIT_MS })
  await readBytes(tool, MAX_OUTPUT_BYTES)
  const { code } = await tool.exited
  if (code !== 1) await expectSuccess(tool, 'Cannot commit')
  return code === 1 || (await readProgress(repository)) === 'merge'
}

/** Keeps the author of an amended commit unless the request names one. */
function amendOptions(amend: boolean, author: CommitRequest['author']): readonly string[] {
  if (!amend) return []
  return author === undefined ? ['--amend'] : ['--amend', '--reset-author']
}

/** The committer is the configured identity, or the author when there is none. */
function identityEnv(author: CommitRequest['author'], hasIdentity: boolean): Record<string, string> {
  if (author === undefined) return {}
  const { name, email } = author
  const committer = hasIdentity ? {} : { GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email }
  return { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, ...committer }
}
