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
  type GitFolder,
  NO_CONFIG,
  readBytes,
  readLine,
  parseConfigNames,
} from './git-command.ts'
import { type GitScratch, type GitSetting, parseSettings } from './private-config.ts'
import type { GitLocks } from './git-locks.ts'
import type { RunTool } from '../tool.ts'

/** Timeout of commands that read a few small files. */
const QUERY_MS = 10_000
const MAX_LOCATION_BYTES = 16 * 1024
/** Size of the whole configuration. */
const MAX_CONFIG_BYTES = 4 * 1024 * 1024

/** The part of a workspace that git needs. */
interface GitWorkspace {
  readonly files: Pick<Files, 'openFolder' | 'stat' | 'remove'>
  readonly runTool: RunTool
  /** For copies of configurations. */
  readonly gitScratch: GitScratch
  readonly gitLocks: GitLocks
}

/** An open repository of the workspace. */
export interface Repository extends GitFolder, Disposable {
  readonly files: GitWorkspace['files']
  /** The work tree's folder; all paths are relative to it. */
  readonly path: string
  /** The git directory of this work tree, relative to the workspace. */
  readonly gitPath: string
  readonly gitLocks: GitLocks
}

/**
 * Opens the repository of a folder. Its git directory must be in the workspace as well: a linked work tree or submodule has it
 * elsewhere, and a planted `.git` can point anywhere. Throws `not_a_repository`.
 */
export async function openRepository(
  { files, runTool, gitScratch, gitLocks }: GitWorkspace,
  path = '.',
  signal?: AbortSignal,
): Promise<Repository> {
  using folders = new DisposableStack()
  const open = async (name: string): Promise<number> =>
    folders.adopt(await files.openFolder(name), (fd) => closeSync(fd))
  const root = await open('.')
  const folder = path === '.' ? root : await open(path)
  const { gitPath, commonPath } = await locate({ runTool, folder, config: NO_CONFIG, signal }, root)
  const settings = await readSettings(runTool, folder, gitScratch.globalConfig)
  const config = parseConfigNames(settings.map(({ key }) => key))
  const common = folders.adopt(openCommonFolder(gitScratch, commonPath, settings), ({ remove }) => remove())
  const kept = folders.move()
  return {
    files,
    runTool,
    folder,
    config,
    commonFolder: common.path,
    signal,
    path,
    gitPath,
    gitLocks,
    [Symbol.dispose]: () => kept.dispose(),
  }
}

async function readSettings(
  runTool: RunTool,
  folder: number,
  globalConfig: string,
): Promise<readonly GitSetting[]> {
  const tool = await startConfigListing(runTool, { folder, globalConfig, timeMs: QUERY_MS })
  const { bytes, isCut } = await readBytes(tool, MAX_CONFIG_BYTES)
  if (isCut) throw new SandwireError('git_failed', 'Cannot use git: the configuration is too large')
  await expectSuccess(tool, 'Cannot use git')
  return parseSettings(bytes)
}

function openCommonFolder(
  gitScratch: GitScratch,
  commonPath: string,
  settings: readonly GitSetting[],
): ReturnType<GitScratch['openCommonFolder']> {
  try {
    return gitScratch.openCommonFolder(commonPath, settings)
  } catch (cause) {
    const message = 'Cannot use git: its configuration cannot be copied; make room in the temporary folder'
    throw new SandwireError('git_failed', message, { cause })
  }
}

/** The git directory relative to the root, and its common directory. Throws `not_a_repository` when one is outside the workspace. */
async function locate(git: GitFolder, root: number): Promise<{ gitPath: string; commonPath: string }> {
  const args = ['--absolute-git-dir', '--path-format=absolute', '--git-common-dir'] as const
  const tool = await callGit(git, { args: ['rev-parse', ...args], timeMs: QUERY_MS })
  const { bytes } = await readBytes(tool, MAX_LOCATION_BYTES)
  const { code } = await tool.exited
  if (code !== 0 && /not a git repository/.test(await tool.stderr)) throw notARepository('not a repository')
  await expectSuccess(tool, 'Cannot use git')
  const top = `${pathFromBytes(readlinkSync(`/proc/self/fd/${root}`, { encoding: 'buffer' }))}/`
  const [own, common, ...more] = pathFromBytes(bytes).replace(/\n$/, '').split('\n')
  // A path with a newline reads as two lines and is refused.
  const isInside = own?.startsWith(top) === true && common?.startsWith(top) === true && more.length === 0
  if (own === undefined || common === undefined || !isInside)
    throw notARepository('the git directory is outside the workspace')
  return { gitPath: own.slice(top.length), commonPath: common }
}

function notARepository(why: string): SandwireError {
  return new SandwireError('not_a_repository', `Cannot use git: ${why}`)
}

/** Resolves a name to a commit id; undefined when there is none. */
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

/** Like `findCommit`, but throws `git_failed`. */
export async function requireCommit(git: GitFolder, ref: string): Promise<string> {
  const oid = await findCommit(git, ref)
  if (oid === undefined)
    throw new SandwireError('git_failed', `Cannot find ${quotePath(ref)}: no such commit`)
  return oid
}

/** An operation in progress. */
type Progress = 'rebase' | 'am' | 'merge' | 'cherry-pick' | 'revert' | 'bisect'

/** Files that git creates during an operation; the first that exists counts, since a rebase also picks and merges. */
const TRACES: readonly (readonly [string, Progress])[] = [
  ['rebase-merge', 'rebase'],
  ['rebase-apply/applying', 'am'],
  ['rebase-apply', 'rebase'],
  ['MERGE_HEAD', 'merge'],
  ['CHERRY_PICK_HEAD', 'cherry-pick'],
  ['REVERT_HEAD', 'revert'],
  ['BISECT_LOG', 'bisect'],
]

/** The operation in progress, or null. */
export async function readProgress({ files, gitPath }: Repository): Promise<Progress | null> {
  for (const [name, progress] of TRACES) {
    try {
      await files.stat(`${gitPath}/${name}`)
      return progress
    } catch (caught) {
      if (SandwireError.from(caught).code === 'internal') throw caught
      // Missing or unreadable: not in progress.
    }
  }
  return null
}

/** Validates a path in the repository; "." is all of it. Throws `path_refused`. */
export function checkPath(path: string): string {
  const names = parsePath(path).names.map(pathFromBytes)
  // Git would resolve `a/..` by text, whatever `a` is.
  if (names.includes('..'))
    throw new SandwireError('path_refused', `Cannot use the path ${quotePath(path)}: it holds ".."`)
  return names.length === 0 ? '.' : names.join('/')
}

/** True for temporary files of sandboxd, and files in such folders. */
export function isUnfinished(path: string): boolean {
  return path.split('/').some(isHiddenName)
}

const MAX_REF_CHARS = 1_024

/** Characters of a branch or tag name, followed by `~2` or `^1`. Excludes options and ranges. */
const REF = /^(?!-)(?!.*\.\.)(?!.*@\{)[^\p{Cc}\p{Cs} ~^:?*[\\]+([~^][0-9]{0,9})*$/u

/** Validates the name of a commit; throws `bad_request`. */
export function checkRef(ref: string, parameter: string): string {
  if (ref.length <= MAX_REF_CHARS && REF.test(ref)) return ref
  throw new SandwireError(
    'bad_request',
    `Cannot use parameter "${parameter}": ${quotePath(ref)} is not the name of a commit`,
  )
}
