import { closeSync, readlinkSync } from 'node:fs'
import { pathFromBytes, SandwireError } from '@sandwire/protocol'
import { quotePath } from '../beneath/file-error.ts'
import { parsePath } from '../beneath/path.ts'
import type { Files } from '../files.ts'
import { isHiddenName } from '../files/context.ts'
import {
  callGit,
  startConfigListing,
  expectSuccess,
  type GitConfig,
  type GitFolder,
  NO_CONFIG,
  readBytes,
  readLine,
  parseConfigNames,
  readTokens,
} from './git-command.ts'
import type { RunTool } from '../tool.ts'

/** Enough for what reads a few small files. */
const QUERY_MS = 10_000
/** Most that is read about where a repository is. */
const MAX_LOCATION_BYTES = 16 * 1024
/** Most names of settings that are looked at. */
const MAX_SETTINGS = 100_000

/** What git needs of a workspace. */
interface GitWorkspace {
  readonly files: Pick<Files, 'openFolder' | 'stat' | 'remove'>
  readonly runTool: RunTool
}

/** A repository in the workspace, with its folder open. */
export interface Repository extends GitFolder, Disposable {
  readonly files: GitWorkspace['files']
  /** Folder that the work tree is, and that all paths are relative to. */
  readonly path: string
  /** Where git keeps what is this work tree's own, from the workspace's root. */
  readonly gitPath: string
}

/**
 * Opens the repository whose work tree is a folder of the workspace. What git keeps must lie in the workspace as well: for a
 * linked work tree and a submodule that is another place than `.git`, for a `.git` that somebody planted it may be anywhere.
 * Throws `not_a_repository`.
 */
export async function openRepository(
  { files, runTool }: GitWorkspace,
  path = '.',
  signal?: AbortSignal,
): Promise<Repository> {
  using folders = new DisposableStack()
  const open = async (name: string): Promise<number> =>
    folders.adopt(await files.openFolder(name), (fd) => closeSync(fd))
  const root = await open('.')
  const folder = path === '.' ? root : await open(path)
  const gitPath = await locate({ runTool, folder, config: NO_CONFIG, signal }, root)
  const config = await readConfig(runTool, folder)
  const kept = folders.move()
  return { files, runTool, folder, config, signal, path, gitPath, [Symbol.dispose]: () => kept.dispose() }
}

async function readConfig(runTool: RunTool, folder: number): Promise<GitConfig> {
  const tool = await startConfigListing(runTool, folder, QUERY_MS)
  const names: string[] = []
  for await (const token of readTokens(tool)) {
    names.push(pathFromBytes(token))
    if (names.length > MAX_SETTINGS)
      throw new SandwireError('git_failed', 'Cannot use git: it is configured too much')
  }
  await expectSuccess(tool, 'Cannot use git')
  return parseConfigNames(names)
}

/** Where git keeps this work tree's own things, from the root; throws `not_a_repository` when anything lies outside. */
async function locate(git: GitFolder, root: number): Promise<string> {
  const args = ['--absolute-git-dir', '--path-format=absolute', '--git-common-dir'] as const
  const tool = await callGit(git, { args: ['rev-parse', ...args], timeMs: QUERY_MS })
  const { bytes } = await readBytes(tool, MAX_LOCATION_BYTES)
  const { code } = await tool.exited
  if (code !== 0 && /not a git repository/.test(await tool.stderr)) throw none('there is no repository')
  await expectSuccess(tool, 'Cannot use git')
  const top = `${pathFromBytes(readlinkSync(`/proc/self/fd/${root}`, { encoding: 'buffer' }))}/`
  const [own, common, ...more] = pathFromBytes(bytes).replace(/\n$/, '').split('\n')
  // A place with a newline in its name reads as two: it is refused, rather than guessed at.
  const isInside = own?.startsWith(top) === true && common?.startsWith(top) === true && more.length === 0
  if (own === undefined || !isInside) throw none('what it keeps is outside the workspace')
  return own.slice(top.length)
}

function none(why: string): SandwireError {
  return new SandwireError('not_a_repository', `Cannot use git: ${why}`)
}

/** The commit that a name stands for; undefined when there is none. */
export async function findCommit(
  git: GitFolder,
  ref: string,
  parameter = 'ref',
): Promise<string | undefined> {
  const name = `${checkRef(ref, parameter)}^{commit}`
  const tool = await callGit(git, {
    args: ['rev-parse', '--verify', '--quiet', '--end-of-options', name],
    timeMs: QUERY_MS,
  })
  const oid = await readLine(tool)
  const { code, isLate } = await tool.exited
  if (isLate) await expectSuccess(tool, 'Cannot use git')
  return code === 0 && /^[0-9a-f]{40,64}$/.test(oid) ? oid : undefined
}

/** The same, where there must be one; throws `git_failed`. */
export async function requireCommit(git: GitFolder, ref: string): Promise<string> {
  const oid = await findCommit(git, ref)
  if (oid === undefined)
    throw new SandwireError('git_failed', `Cannot find ${quotePath(ref)}: no such commit`)
  return oid
}

/** What git is in the middle of. */
type Progress = 'rebase' | 'am' | 'merge' | 'cherry-pick' | 'revert' | 'bisect'

/** What git leaves while it is at something; the first that is there counts, since a rebase picks and merges as well. */
const TRACES: readonly (readonly [string, Progress])[] = [
  ['rebase-merge', 'rebase'],
  ['rebase-apply/applying', 'am'],
  ['rebase-apply', 'rebase'],
  ['MERGE_HEAD', 'merge'],
  ['CHERRY_PICK_HEAD', 'cherry-pick'],
  ['REVERT_HEAD', 'revert'],
  ['BISECT_LOG', 'bisect'],
]

/** What the repository is in the middle of, or null. */
export async function readProgress({ files, gitPath }: Repository): Promise<Progress | null> {
  for (const [name, progress] of TRACES) {
    try {
      await files.stat(`${gitPath}/${name}`)
      return progress
    } catch (caught) {
      if (SandwireError.from(caught).code === 'internal') throw caught
      // Not there, or not to be seen: git is not at it.
    }
  }
  return null
}

/** A path of the repository as git names it, or "." for all of it; throws `path_refused`. */
export function checkPath(path: string): string {
  const names = parsePath(path).names.map(pathFromBytes)
  // Git would take `a/..` for the folder itself, whatever `a` is.
  if (names.includes('..'))
    throw new SandwireError('path_refused', `Cannot use the path ${quotePath(path)}: it holds ".."`)
  return names.length === 0 ? '.' : names.join('/')
}

/** Whether a path is of a file that is being written, or in a folder that is: nobody's work yet. */
export function isUnfinished(path: string): boolean {
  return path.split('/').some(isHiddenName)
}

/** Longest name of a commit that is looked at. */
const MAX_REF_CHARS = 1_024

/** What git allows in the name of a branch or tag, with `~2` and `^1` behind it. Nothing that reads as an option or a range. */
const REF = /^(?!-)(?!.*\.\.)(?!.*@\{)[^\p{Cc}\p{Cs} ~^:?*[\\]+([~^][0-9]{0,9})*$/u

/** The name of a commit; throws `bad_request`. */
export function checkRef(ref: string, parameter: string): string {
  if (ref.length <= MAX_REF_CHARS && REF.test(ref)) return ref
  throw new SandwireError(
    'bad_request',
    `Cannot use parameter "${parameter}": ${quotePath(ref)} is no name of a commit`,
  )
}
