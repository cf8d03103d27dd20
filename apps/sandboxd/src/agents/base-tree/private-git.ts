import { SandwireError } from '@sandwire/protocol'
import type { RunningTool, RunTool } from '../../workspace/tool.ts'

/**
 * Git on the workspace with a git directory of our own: neither the repository's configuration, attributes, hooks and excludes nor
 * the user's take part, so nothing that an agent planted there runs or changes what is compared.
 */
const ENVIRONMENT: Readonly<Record<string, string>> = {
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_ATTR_NOSYSTEM: '1',
  GIT_ALLOW_PROTOCOL: 'none',
  GIT_TERMINAL_PROMPT: '0',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_PAGER: 'cat',
  LC_ALL: 'C.UTF-8',
}

/** Written into the private git directory. */
export const PRIVATE_CONFIG = `[core]
	repositoryformatversion = 0
	bare = false
	fileMode = true
	symlinks = true
	autocrlf = false
	trustctime = true
	checkStat = default
	fsmonitor = false
	untrackedCache = false
	splitIndex = false
	hooksPath = /dev/null
	excludesFile = /dev/null
	attributesFile = /dev/null
	precomposeUnicode = false
	protectNTFS = false
	protectHFS = false
	compression = 1
	quotePath = true
	fsync = none
[index]
	version = 2
	threads = 1
[gc]
	auto = 0
[diff]
	renameLimit = 1000
	external =
	noprefix = false
	mnemonicPrefix = false
	ignoreSubmodules = all
	suppressBlankEmpty = false
`

/** Has precedence over every `.gitattributes`: content is compared byte by byte. */
export const PRIVATE_ATTRIBUTES =
  '* !text !eol !crlf !ident !filter !working-tree-encoding !diff !merge !whitespace\n'

/** Hashing 50,000 files takes some seconds. */
const GIT_MS = 10 * 60_000

export interface PrivateGit {
  readonly runTool: RunTool
  /** Descriptor of the workspace. */
  readonly workspace: number
  /** Our git directory, index, and folder for new objects. */
  readonly gitDir: string
  readonly index: string
  readonly objects: string
  /** Objects of the base; undefined while the base is recorded. */
  readonly alternates?: string
}

export interface Finished {
  readonly stdout: Buffer
  readonly code: number
}

interface GitOptions {
  readonly stdin?: Uint8Array
  readonly allowed?: readonly number[]
}

/** Runs git and returns its output, which the caller knows to be bounded by the number of files. */
export async function git(
  plan: PrivateGit,
  args: readonly [string, ...string[]],
  options: GitOptions = {},
): Promise<Buffer> {
  const { stdout } = await runGit(plan, args, options)
  return stdout
}

export function runGit(
  plan: PrivateGit,
  args: readonly [string, ...string[]],
  options: GitOptions,
): Promise<Finished> {
  const call = { argv: ['git', ...args] as const, env: environmentOf(plan), ...options }
  return runProgram(plan.runTool, plan.workspace, call)
}

function environmentOf({ gitDir, index, objects, alternates }: PrivateGit): Readonly<Record<string, string>> {
  return {
    ...ENVIRONMENT,
    GIT_DIR: gitDir,
    GIT_WORK_TREE: '.',
    GIT_INDEX_FILE: index,
    GIT_OBJECT_DIRECTORY: objects,
    ...(alternates === undefined ? {} : { GIT_ALTERNATE_OBJECT_DIRECTORIES: alternates }),
  }
}

export interface ProgramCall {
  readonly argv: readonly [string, ...string[]]
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: Uint8Array
  /** Exit codes that are no error. */
  readonly allowed?: readonly number[]
}

/** Runs a program of the sandbox as its user, in the workspace. */
export async function runProgram(runTool: RunTool, workspace: number, call: ProgramCall): Promise<Finished> {
  const { argv, env = {}, stdin, allowed = [0] } = call
  const tool = await runTool({
    argv,
    folder: workspace,
    env,
    timeMs: GIT_MS,
    ...(stdin === undefined ? {} : { stdin }),
  })
  const stdout = Buffer.from(await new Response(tool.stdout).arrayBuffer())
  return { stdout, code: await check(tool, argv, allowed) }
}

async function check(
  tool: RunningTool,
  argv: readonly string[],
  allowed: readonly number[],
): Promise<number> {
  const [{ code, isLate }, stderr] = await Promise.all([tool.exited, tool.stderr])
  if (isLate) throw new SandwireError('timed_out', `Cannot compare the files: ${argv[0]} took too long`)
  if (code !== null && allowed.includes(code)) return code
  const what = argv.slice(0, 2).join(' ')
  throw new SandwireError(
    'git_failed',
    `Cannot compare the files: ${what} failed: ${stderr.trim().slice(0, 500)}`,
  )
}
