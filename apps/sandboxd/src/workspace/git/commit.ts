import { SandwireError } from '@sandwire/protocol'
import { callGit } from './call.ts'
import { expectSuccess, readBytes } from './output.ts'
import { type Repository, requireCommit } from './repository.ts'
import { readProgress } from './progress.ts'

export interface CommitRequest {
  readonly message: string
  /** Instead of whom git knows. */
  readonly author?: { readonly name: string; readonly email: string } | undefined
  /** Takes the place of the last commit. */
  readonly amend: boolean
}

/**
 * The message stands as it was written. Hooks are not run and nothing is signed: see how git is called. Whether there is
 * anything to commit was found out before: git itself would look into submodules, and so run what their configuration names.
 */
const OPTIONS = ['--quiet', '--file=-', '--cleanup=whitespace', '--no-status', '--allow-empty'] as const
const COMMIT_MS = 60_000
const MAX_SAID_BYTES = 64 * 1024

/** Commits what is staged; returns the new commit. Throws `git_failed`. */
export async function commit(
  repository: Repository,
  { message, author, amend }: CommitRequest,
): Promise<string> {
  if (!amend && !(await hasAnything(repository)))
    throw new SandwireError('git_failed', 'Cannot commit: nothing is staged')
  const tool = await callGit(repository, {
    args: ['commit', ...OPTIONS, ...amendOptions(amend, author)],
    stdin: new TextEncoder().encode(message),
    env: identityEnv(author, repository.config.hasIdentity),
    timeMs: COMMIT_MS,
  })
  await readBytes(tool, MAX_SAID_BYTES)
  const { code } = await tool.exited
  const stderr = await tool.stderr
  if (code !== 0 && /identity unknown|tell me who you are|no (email|name) was given/i.test(stderr))
    throw new SandwireError(
      'git_failed',
      'Cannot commit: git does not know who you are; set user.name and user.email, or name an author',
    )
  await expectSuccess(tool, 'Cannot commit')
  return requireCommit(repository, 'HEAD')
}

/** Something is staged, or a merge is to be concluded. */
async function hasAnything(repository: Repository): Promise<boolean> {
  const args = [
    'diff',
    '--cached',
    '--quiet',
    '--no-ext-diff',
    '--no-textconv',
    '--ignore-submodules=none',
  ] as const
  const tool = await callGit(repository, { args, timeMs: COMMIT_MS })
  await readBytes(tool, MAX_SAID_BYTES)
  const { code } = await tool.exited
  if (code !== 1) await expectSuccess(tool, 'Cannot commit')
  return code === 1 || (await readProgress(repository)) === 'merge'
}

/** The author of the commit that is amended stays, unless the request names one. */
function amendOptions(amend: boolean, author: CommitRequest['author']): readonly string[] {
  if (!amend) return []
  return author === undefined ? ['--amend'] : ['--amend', '--reset-author']
}

/** Who commits is whom git knows; where it knows nobody, the author. */
function identityEnv(author: CommitRequest['author'], hasIdentity: boolean): Record<string, string> {
  if (author === undefined) return {}
  const { name, email } = author
  const committer = hasIdentity ? {} : { GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email }
  return { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, ...committer }
}
