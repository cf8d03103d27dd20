import { pathFromBytes, SandwireError } from '@sandwire/protocol'
import { quotePath } from '../beneath/file-error.ts'
import { callGit, expectSuccess, readBytes, readLine, readTokens } from './git-command.ts'
import { findCommit, type Repository, requireCommit } from './repository.ts'

export const LOG_LIMIT = 50
export const LOG_MAX_LIMIT = 500
/** Limits of one message and of a page, which has at least one commit. */
const MAX_MESSAGE_BYTES = 64 * 1024
const MAX_PAGE_CHARS = 4 * 1024 * 1024
const LOG_MS = 20_000

interface LogRequest {
  readonly ref?: string | undefined
  /** Only commits that changed it. */
  readonly path?: string | undefined
  readonly limit: number
  /** The last commit of the previous page. */
  readonly after?: string | undefined
}

interface Person {
  readonly name: string
  readonly email: string
  readonly timeMs: number
}

interface Commit {
  readonly oid: string
  readonly parents: readonly string[]
  readonly author: Person
  readonly committer: Person
  /** Branches and tags that point to it. */
  readonly refs: readonly string[]
  readonly message: string
}

interface Log {
  readonly commits: readonly Commit[]
  readonly truncated: boolean
}

/** Fields of a commit, NUL-separated. */
const COMMIT_FORMAT = ['%H', '%P', '%an', '%ae', '%at', '%cn', '%ce', '%ct', '%D', '%B'] as const
const OPTIONS = [
  '-z',
  '--no-patch',
  '--no-mailmap',
  '--no-notes',
  '--encoding=UTF-8',
  `--format=tformat:${COMMIT_FORMAT.join('%x00')}`,
] as const

/** Lists commits from a name backwards. Throws `git_failed` when the commit or `after` does not exist. */
export async function readLog(repository: Repository, { ref, path, limit, after }: LogRequest): Promise<Log> {
  const start =
    ref === undefined ? await findCommit(repository, 'HEAD') : await requireCommit(repository, ref)
  if (start === undefined) return { commits: [], truncated: false }
  const tool = await callGit(repository, {
    // `--` keeps a file of the same name from being taken for the commit.
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
  if (!isPast) throw new SandwireError('git_failed', 'Cannot continue the log: "after" is not in it')
  return { commits, truncated: false }
}

async function* readCommits(tokens: AsyncIterable<Uint8Array>): AsyncGenerator<Commit, void> {
  let fields: string[] = []
  for await (const token of tokens) {
    fields.push(new TextDecoder().decode(token.subarray(0, MAX_MESSAGE_BYTES)))
    if (fields.length < COMMIT_FORMAT.length) continue
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

const MAX_BRANCHES = 1_000
const MAX_BYTES = 4 * 1024 * 1024
const BRANCHES_MS = 20_000

interface Branch {
  readonly name: string
  readonly kind: 'local' | 'remote'
  readonly oid: string
  /** Time of its last commit. */
  readonly timeMs: number
  readonly subject: string
  /** Its upstream branch, existing or not. */
  readonly upstream?: string
}

interface Branches {
  readonly head: {
    /** Absent when HEAD is detached. */
    readonly branch?: string
    /** Absent before the first commit. */
    readonly oid?: string
  }
  /** Most recently committed first. */
  readonly branches: readonly Branch[]
  readonly truncated: boolean
}

const FIELDS = [
  'refname',
  'symref',
  'objectname',
  'upstream',
  'committerdate:unix',
  'contents:subject',
] as const
const BRANCH_FORMAT = FIELDS.map((field) => `%(${field})`).join('%00')

/** Lists local and remote branches. */
export async function readBranches(repository: Repository, maxBranches = MAX_BRANCHES): Promise<Branches> {
  const count = `--count=${maxBranches + 1}`
  const tool = await callGit(repository, {
    args: [
      'for-each-ref',
      `--format=${BRANCH_FORMAT}`,
      '--sort=-committerdate',
      count,
      'refs/heads',
      'refs/remotes',
    ],
    timeMs: BRANCHES_MS,
  })
  const { bytes, isCut } = await readBytes(tool, MAX_BYTES)
  if (!isCut) await expectSuccess(tool, 'Cannot list branches')
  const lines = bytes.toString().split('\n').slice(0, -1)
  const branches = lines.slice(0, maxBranches).flatMap(readBranch)
  return { head: await readHead(repository), branches, truncated: isCut || lines.length > maxBranches }
}

function readBranch(line: string): Branch[] {
  const [refname = '', symref = '', oid = '', upstream = '', time = '', subject = ''] = line.split('\0')
  const [, folder, name] = /^refs\/(heads|remotes)\/(.*)$/.exec(refname) ?? []
  // `origin/HEAD` is an alias of a listed branch.
  if (name === undefined || symref !== '') return []
  const kind = folder === 'heads' ? 'local' : 'remote'
  const followed = upstream === '' ? {} : { upstream: upstream.replace(/^refs\/(heads|remotes)\//, '') }
  return [{ name, kind, oid, timeMs: Number(time) * 1000, subject, ...followed }]
}

async function readHead(repository: Repository): Promise<Branches['head']> {
  const tool = await callGit(repository, { args: ['symbolic-ref', '--quiet', 'HEAD'], timeMs: BRANCHES_MS })
  const name = await readLine(tool)
  const oid = await findCommit(repository, 'HEAD')
  const branch = name.replace(/^refs\/heads\//, '')
  return { ...(branch === '' ? {} : { branch }), ...(oid === undefined ? {} : { oid }) }
}

/** Maximum bytes of a file in the response. */
const SHOW_MAX_BYTES = 4 * 1024 * 1024
const SHOW_MS = 20_000

/** A file at a commit. */
interface ShownFile {
  readonly commit: string
  readonly kind: 'file' | 'link'
  readonly sizeBytes: number
  readonly bytes: Buffer
  readonly truncated: boolean
}

interface TreeEntry {
  readonly mode: string
  readonly type: string
  readonly oid: string
  readonly sizeBytes: number
}

/** Reads a file at a commit. Throws `file_not_found`, `is_a_folder` and `special_file`. */
export async function showFile(
  repository: Repository,
  { path, ref }: { readonly path: string; readonly ref: string },
  maxBytes = SHOW_MAX_BYTES,
): Promise<ShownFile> {
  const commit = await requireCommit(repository, ref)
  const entry = await findEntry(repository, commit, path)
  const cannot = `Cannot show ${quotePath(path)} at ${quotePath(ref)}`
  if (entry?.type === 'tree' || path === '.') throw new SandwireError('is_a_folder', `${cannot}: a folder`)
  if (entry === undefined) throw new SandwireError('file_not_found', `${cannot}: no such file`)
  if (entry.type !== 'blob') throw new SandwireError('special_file', `${cannot}: a submodule`)
  const tool = await callGit(repository, { args: ['cat-file', 'blob', entry.oid], timeMs: SHOW_MS })
  const { bytes, isCut } = await readBytes(tool, maxBytes)
  if (!isCut) await expectSuccess(tool, cannot)
  const kind = entry.mode === '120000' ? 'link' : 'file'
  return { commit, kind, sizeBytes: entry.sizeBytes, bytes, truncated: isCut }
}

async function findEntry(
  repository: Repository,
  commit: string,
  path: string,
): Promise<TreeEntry | undefined> {
  const args = ['ls-tree', '--full-tree', '--long', '-z', commit] as const
  const tool = await callGit(repository, { args, path, timeMs: SHOW_MS })
  for await (const token of readTokens(tool)) {
    const [, mode, type, oid, size, name] =
      /^([0-7]+) (\w+) ([0-9a-f]+) +([0-9]+|-)\t(.*)$/s.exec(pathFromBytes(token)) ?? []
    if (mode === undefined || type === undefined || oid === undefined || name !== path) continue
    return { mode, type, oid, sizeBytes: Number(size) || 0 }
  }
  await expectSuccess(tool, `Cannot show ${quotePath(path)}`)
  return undefined
}

/** The text of a file; undefined unless it is UTF-8 without NUL. */
export function textOf({ bytes, truncated }: Pick<ShownFile, 'bytes' | 'truncated'>): string | undefined {
  try {
    // A truncated file may end within a character.
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, {
      stream: truncated,
    })
    return text.includes('\0') ? undefined : text
  } catch {
    return undefined
  }
}
