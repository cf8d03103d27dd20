import { pathToBytes, SandwireError } from '@sandwire/protocol'
import type { RunTool, RunningTool } from '../tool.ts'

/**
 * How git is called, and nowhere else. A repository's configuration is whatever somebody put there, and much of it names
 * programs; none of them is run. Arguments are templates: what comes from a request is a path after `--`, a path on stdin, or
 * a name that `rev-parse --end-of-options` has turned into the name of an object.
 */
const ENVIRONMENT: Readonly<Record<string, string>> = {
  // The repository is the folder's own: none further up is found, and no `core.worktree` leads elsewhere. Nor does it
  // matter who owns it, since nothing of it is run.
  GIT_DIR: '.git',
  GIT_WORK_TREE: '.',
  GIT_CONFIG_NOSYSTEM: '1',
  // Nothing is ever fetched: not even what a partial clone misses, by a program that its remote names.
  GIT_ALLOW_PROTOCOL: 'none',
  GIT_TERMINAL_PROMPT: '0',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_LITERAL_PATHSPECS: '1',
  GIT_PAGER: 'cat',
  GIT_EDITOR: ':',
  // Messages are compared and shown.
  LC_ALL: 'C.UTF-8',
}

/** Found in the listing of a git that takes configuration from its environment; older ones would take none of it. */
const VERSION_PROBE = 'sandwire.witness'

/** Configuration over the repository's and the user's own. */
const SETTINGS: Readonly<Record<string, string>> = {
  [VERSION_PROBE]: '1',
  // Programs that git would start.
  'core.fsmonitor': 'false',
  'core.hooksPath': '/dev/null',
  'commit.gpgSign': 'false',
  'log.showSignature': 'false',
  'submodule.recurse': 'false',
  // It would go on when the answer is long given, and has a hook of its own.
  'maintenance.auto': 'false',
  // An author is known or asked for, never guessed from the machine's name.
  'user.useConfigOnly': 'true',
  // What is read must not depend on taste.
  'color.ui': 'false',
  'core.quotePath': 'true',
  'log.follow': 'false',
}

/** What a repository's configuration says, as far as it matters here. */
export interface GitConfig {
  /** Names of filters that would change files on their way in and out. */
  readonly filters: readonly string[]
  /** Names of hooks that are settings instead of files, which git has since 2.54. */
  readonly hooks: readonly string[]
  /** Git knows who commits. */
  readonly hasIdentity: boolean
}

/** A folder that git is called in. */
export interface GitFolder {
  readonly runTool: RunTool
  readonly folder: number
  readonly config: GitConfig
  readonly signal?: AbortSignal | undefined
}

export interface GitCall {
  /** The command and its options; objects by the names git gave them. */
  readonly args: readonly [string, ...string[]]
  /** Given after `--`. */
  readonly path?: string | undefined
  /** Given after the path: where it was before it was renamed. */
  readonly oldPath?: string | undefined
  /** Given on stdin to commands that take `--pathspec-from-file`. */
  readonly paths?: readonly string[]
  /** Given on stdin to commands that take `-z --stdin`. */
  readonly stdinPaths?: readonly string[]
  readonly stdin?: Uint8Array
  readonly env?: Readonly<Record<string, string>>
  /** What becomes of a file that a filter would have to change: it is taken as it is, or git fails. */
  readonly filtered?: 'as_is' | 'refused'
  readonly timeMs: number
}

/** Before anything is known of a folder. Enough to ask where its repository is, which starts nothing. */
export const NO_CONFIG: GitConfig = { filters: [], hooks: [], hasIdentity: false }

/** Most that the names of filters and hooks may hold: they travel in the environment. */
const MAX_NAMES = 256
const MAX_NAME_CHARS = 16 * 1024

/** Starts git. */
export function callGit({ runTool, folder, config, signal }: GitFolder, call: GitCall): Promise<RunningTool> {
  const settings = [...Object.entries(SETTINGS), ...disableCommands(config, call.filtered ?? 'as_is')]
  return runTool({
    ...argumentsOf(call),
    folder,
    env: { ...ENVIRONMENT, ...call.env, ...toEnvironment(settings) },
    timeMs: call.timeMs,
    ...(signal === undefined ? {} : { signal }),
  })
}

/** Starts the listing of what is configured. Unlike all others it sees the machine's filters too: they are not run either. */
export function startConfigListing(runTool: RunTool, folder: number, timeMs: number): Promise<RunningTool> {
  const { GIT_CONFIG_NOSYSTEM: _, ...env } = ENVIRONMENT
  return runTool({
    argv: ['git', 'config', '--list', '--name-only', '--null'],
    folder,
    env: { ...env, ...toEnvironment(Object.entries(SETTINGS)) },
    timeMs,
  })
}

/** Reads the names that the listing gives. Throws `git_failed` when what they stand for cannot be kept from running. */
export function parseConfigNames(names: readonly string[]): GitConfig {
  if (!names.includes(VERSION_PROBE))
    throw new SandwireError('git_failed', 'Cannot use git: 2.31 or newer is needed')
  const has = (name: string): boolean => names.includes(`user.${name}`) || names.includes(`committer.${name}`)
  return {
    filters: namesOf(/^filter\.(.*)\.[^.]+$/s, names),
    hooks: namesOf(/^hook\.(.*)\.[^.]+$/s, names),
    hasIdentity: has('name') && has('email'),
  }
}

function namesOf(pattern: RegExp, settings: readonly string[]): readonly string[] {
  const found = new Set(settings.flatMap((setting) => pattern.exec(setting)?.slice(1) ?? []))
  const text = [...found].join('')
  // An environment is text here and holds no other bytes, and a name that is not overridden would be run.
  if (!text.isWellFormed())
    throw new SandwireError('git_failed', 'Cannot use git: the name of a filter or hook is not UTF-8')
  if (found.size > MAX_NAMES || text.length > MAX_NAME_CHARS)
    throw new SandwireError('git_failed', 'Cannot use git: too many filters or hooks are configured')
  return [...found]
}

/** Empty commands are none; a required filter without a command makes git fail. */
function disableCommands({ filters, hooks }: GitConfig, filtered: 'as_is' | 'refused'): [string, string][] {
  const required = String(filtered === 'refused')
  return [
    ...hooks.map((name): [string, string] => [`hook.${name}.enabled`, 'false']),
    ...filters.flatMap((name): [string, string][] => [
      [`filter.${name}.clean`, ''],
      [`filter.${name}.smudge`, ''],
      [`filter.${name}.process`, ''],
      [`filter.${name}.required`, required],
    ]),
  ]
}

/** In the environment and not as `-c`, which would end the name of a filter at its first `=`. */
function toEnvironment(settings: readonly (readonly [string, string])[]): Record<string, string> {
  const env: Record<string, string> = { GIT_CONFIG_COUNT: String(settings.length) }
  for (const [at, [key, value]] of settings.entries()) {
    env[`GIT_CONFIG_KEY_${at}`] = key
    env[`GIT_CONFIG_VALUE_${at}`] = value
  }
  return env
}

function argumentsOf({ args, path, oldPath, paths, stdinPaths, stdin }: GitCall): {
  argv: [string, ...string[]]
  stdin?: Uint8Array
} {
  if (stdinPaths !== undefined) return { argv: ['git', ...args], stdin: joinPaths(stdinPaths) }
  if (paths !== undefined)
    return {
      argv: ['git', ...args, '--pathspec-from-file=-', '--pathspec-file-nul'],
      stdin: joinPaths(paths),
    }
  if (path === undefined) return { argv: ['git', ...args], ...(stdin === undefined ? {} : { stdin }) }
  const both = oldPath === undefined ? [path] : [path, oldPath]
  if (both.every((one) => one.isWellFormed())) return { argv: ['git', ...args, '--', ...both] }
  // Arguments of a process that is started here are text; xargs gives bytes as they are.
  return { argv: ['xargs', '-0', 'git', ...args, '--'], stdin: joinPaths(both) }
}

function joinPaths(paths: readonly string[]): Uint8Array {
  return Buffer.concat(paths.flatMap((path) => [pathToBytes(path) ?? new Uint8Array(), Uint8Array.of(0)]))
}

/** Most of git's own words that are passed on. */
const MAX_MESSAGE_CHARS = 200

/** Reads at most so many bytes; git is ended when it has more to say. */
export async function readBytes(
  tool: RunningTool,
  maxBytes: number,
): Promise<{ readonly bytes: Buffer; readonly isCut: boolean }> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of tool.stdout) {
    parts.push(part)
    size += part.byteLength
    if (size > maxBytes) return { bytes: Buffer.concat(parts).subarray(0, maxBytes), isCut: true }
  }
  return { bytes: Buffer.concat(parts), isCut: false }
}

/** What is cut at NULs, one after the other. Whoever stops early ends git. */
export async function* readTokens(tool: RunningTool): AsyncGenerator<Uint8Array, void> {
  const tokens = new NulTokens()
  for await (const chunk of tool.stdout) {
    tokens.push(chunk)
    for (let token = tokens.next(); token !== undefined; token = tokens.next()) yield token
  }
}

/** A short answer, without the newline at its end. */
export async function readLine(tool: RunningTool): Promise<string> {
  const { bytes } = await readBytes(tool, 64 * 1024)
  return bytes.toString().replace(/\n$/, '')
}

/** Waits for the end of git. Throws `timed_out` and `git_failed`, the latter with what git says. */
export async function expectSuccess(tool: RunningTool, action: string): Promise<void> {
  const { code, isLate } = await tool.exited
  if (isLate) throw new SandwireError('timed_out', `${action}: git takes too long`)
  if (code !== 0) throw new SandwireError('git_failed', `${action}: ${describeFailure(await tool.stderr)}`)
}

/** The line of git's words that says why, printable: names in it may hold anything. */
function describeFailure(stderr: string): string {
  const lines = stderr.split('\n').filter((line) => line.trim() !== '')
  const why = lines.find((line) => /^(fatal|error): /.test(line)) ?? lines[0] ?? 'git does not say why'
  return printable(why.replace(/^(fatal|error): /, '')).slice(0, MAX_MESSAGE_CHARS)
}

/** Text without characters that move, hide or turn others. */
function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?')
}

/** Cuts a stream of bytes at every NUL, however it is sliced. */
export class NulTokens {
  #chunk: Uint8Array = new Uint8Array()
  #at = 0
  /** Beginning of the token that is not over yet. */
  #begun: Uint8Array[] = []

  /** Adds bytes; those of the last time must have been taken. */
  push(chunk: Uint8Array): void {
    this.#chunk = chunk
    this.#at = 0
  }

  /** The next token without its NUL; undefined when more bytes are needed. */
  next(): Uint8Array | undefined {
    const end = this.#chunk.indexOf(0, this.#at)
    if (end >= 0) return this.#take(end, end + 1)
    this.#begun.push(new Uint8Array(this.#chunk.subarray(this.#at)))
    this.#at = this.#chunk.length
    return undefined
  }

  /** All bytes that were not cut off yet. */
  rest(): Uint8Array {
    return this.#take(this.#chunk.length, this.#chunk.length)
  }

  #take(end: number, next: number): Uint8Array {
    const token = Buffer.concat([...this.#begun, this.#chunk.subarray(this.#at, end)])
    this.#begun = []
    this.#at = next
    return token
  }
}
