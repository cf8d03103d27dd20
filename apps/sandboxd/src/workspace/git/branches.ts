import { callGit } from './call.ts'
import { expectSuccess, readBytes, readLine } from './output.ts'
import { findCommit, type Repository } from './repository.ts'

const MAX_BRANCHES = 1_000
/** Most that is read about them. */
const MAX_BYTES = 4 * 1024 * 1024
const BRANCHES_MS = 20_000

export interface Branch {
  readonly name: string
  readonly kind: 'local' | 'remote'
  readonly oid: string
  /** When its last commit was made. */
  readonly timeMs: number
  readonly subject: string
  /** Name of the branch that it follows, there or not. */
  readonly upstream?: string
}

export interface Branches {
  readonly head: {
    /** Absent when HEAD is a commit itself. */
    readonly branch?: string
    /** Absent before the first commit. */
    readonly oid?: string
  }
  /** The last used first. */
  readonly branches: readonly Branch[]
  /** There are more. */
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
const FORMAT = FIELDS.map((field) => `%(${field})`).join('%00')

/** Branches of this repository and of those it has fetched from. */
export async function readBranches(repository: Repository, maxBranches = MAX_BRANCHES): Promise<Branches> {
  const count = `--count=${maxBranches + 1}`
  const tool = await callGit(repository, {
    args: [
      'for-each-ref',
      `--format=${FORMAT}`,
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
  // `origin/HEAD` is another name for a branch that is listed.
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
