import { SandwireError } from '@sandwire/protocol'
import { callGit } from './call.ts'
import { expectSuccess, readTokens } from './output.ts'
import { findCommit, type Repository, requireCommit } from './repository.ts'

export const LOG_LIMIT = 50
export const LOG_MAX_LIMIT = 500
/** Most of one message that is given, and of all of a page: it ends earlier, but has one commit. */
const MAX_MESSAGE_BYTES = 64 * 1024
const MAX_PAGE_CHARS = 4 * 1024 * 1024
const LOG_MS = 20_000

export interface LogRequest {
  readonly ref?: string | undefined
  /** Only commits that changed it. */
  readonly path?: string | undefined
  readonly limit: number
  /** Last commit of the page before. */
  readonly after?: string | undefined
}

interface Person {
  readonly name: string
  readonly email: string
  readonly timeMs: number
}

export interface Commit {
  readonly oid: string
  readonly parents: readonly string[]
  readonly author: Person
  readonly committer: Person
  /** Branches and tags that are at it. */
  readonly refs: readonly string[]
  readonly message: string
}

export interface Log {
  readonly commits: readonly Commit[]
  /** There are older ones. */
  readonly truncated: boolean
}

/** Fields of a commit, each ended by a NUL. */
const FORMAT = ['%H', '%P', '%an', '%ae', '%at', '%cn', '%ce', '%ct', '%D', '%B'] as const
const OPTIONS = [
  '-z',
  '--no-patch',
  '--no-mailmap',
  '--no-notes',
  '--encoding=UTF-8',
  `--format=tformat:${FORMAT.join('%x00')}`,
] as const

/** Commits from a name backwards. Throws `git_failed` when there is no such commit, or none such to go on after. */
export async function readLog(repository: Repository, { ref, path, limit, after }: LogRequest): Promise<Log> {
  const start =
    ref === undefined ? await findCommit(repository, 'HEAD') : await requireCommit(repository, ref)
  if (start === undefined) return { commits: [], truncated: false }
  const tool = await callGit(repository, {
    // Without a path every commit counts, and a file that is named like the commit is none.
    args: ['log', ...OPTIONS, start, ...(path === undefined ? ['--'] : [])],
    path,
    timeMs: LOG_MS,
  })
  const commits: Commit[] = []
  let isPast = after === undefined
  let chars = 0
  for await (const commit of readCommits(readTokens(tool))) {
    if (!isPast) isPast = commit.oid === after
    else if (commits.length === limit || chars > MAX_PAGE_CHARS) return { commits, truncated: true }
    else {
      commits.push(commit)
      chars += commit.message.length
    }
  }
  await expectSuccess(tool, 'Cannot read the history')
  if (!isPast) throw new SandwireError('git_failed', 'Cannot go on with the history: "after" is not in it')
  return { commits, truncated: false }
}

async function* readCommits(tokens: AsyncIterable<Uint8Array>): AsyncGenerator<Commit, void> {
  let fields: string[] = []
  for await (const token of tokens) {
    fields.push(new TextDecoder().decode(token.subarray(0, MAX_MESSAGE_BYTES)))
    if (fields.length < FORMAT.length) continue
    yield toCommit(fields)
    fields = []
  }
}

function toCommit(fields: readonly string[]): Commit {
  const [oid = '', parents = '', name = '', email = '', time = '', ...rest] = fields
  const [otherName = '', otherEmail = '', otherTime = '', refs = '', message = ''] = rest
  return {
    oid,
    parents: parents.split(' ').filter(Boolean),
    author: { name, email, timeMs: Number(time) * 1000 },
    committer: { name: otherName, email: otherEmail, timeMs: Number(otherTime) * 1000 },
    refs: refs.split(', ').filter(Boolean),
    message: message.replace(/\n$/, ''),
  }
}
