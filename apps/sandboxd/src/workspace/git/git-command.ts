import { pathToBytes, SandwireError } from '@sandwire/protocol'
import type { RunTool, RunningTool } from '../tool.ts'
import { GLOBAL_PROBE } from './private-config.ts'

/**
 * The only place that starts git. A repository's configuration is untrusted and can name programs; none of them is run. It is
 * read once, and git gets a copy that processes of the sandbox cannot change meanwhile.
 * Arguments are fixed: request input is passed after `--`, on stdin, or as an object name that `rev-parse --end-of-options` has
 * resolved.
 */
const ENVIRONMENT: Readonly<Record<string, string>> = {
  // Only the folder's own repository: no parent is searched, and `core.worktree` is ignored. Its owner does not matter, since
  // nothing of it is run.
  GIT_DIR: '.git',
  GIT_WORK_TREE: '.',
  GIT_CONFIG_NOSYSTEM: '1',
  // Nothing is fetched, not even missing objects of a partial clone, which would run a program that the remote names.
  GIT_ALLOW_PROTOCOL: 'none',
  GIT_TERMINAL_PROMPT: '0',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_LITERAL_PATHSPECS: '1',
  GIT_PAGER: 'cat',
  GIT_EDITOR: ':',
  // One locale for the messages that are shown, and for "not a git repository", for which git has no exit code of its own.
  LC_ALL: 'C.UTF-8',
}

/** Present in `git config --list` only if git reads configuration from the environment (2.31 or newer). */
const VERSION_PROBE = 'sandwire.witness'

/** Overrides the repository's and the user's configuration. */
const SETTINGS: Readonly<Record<string, string>> = {
  [VERSION_PROBE]: '1',
  // Settings that name programs.
  'core.fsmonitor': 'false',
  'core.hooksPath': '/dev/null',
  'commit.gpgSign': 'false',
  'log.showSignature': 'false',
  'submodule.recurse': 'false',
  // Would continue after the response, and runs a hook.
  'maintenance.auto': 'false',
  // The author is configured or requested, never derived from the host name.
  'user.useConfigOnly': 'true',
  // Output must not depend on the user's preferences.
  'color.ui': 'false',
  'core.quotePath': 'true',
  'log.follow': 'false',
}

/** The relevant part of a repository's configuration. */
export interface GitConfig {
  /** Names of clean and smudge filters. */
  readonly filters: readonly string[]
  /** Names of hooks in the configuration (git 2.54 and newer). */
  readonly hooks: readonly string[]
  /** Name and email of the committer are configured. */
  readonly hasIdentity: boolean
}

/** A folder that git runs in. */
export interface GitFolder {
  readonly runTool: RunTool
  readonly folder: number
  readonly config: GitConfig
  /** Common directory with a copy of the configuration; undefined while that is not known yet. */
  readonly commonFolder?: string
  readonly signal?: AbortSignal | undefined
}

export interface GitCall {
  /** Command and options; objects by id. */
  readonly args: readonly [string, ...string[]]
  /** Passed after `--`. */
  readonly path?: string | undefined
  /** Passed after the path: its name before a rename. */
  readonly oldPath?: string | undefined
  /** Passed on stdin, with `--pathspec-from-file`. */
  readonly paths?: readonly string[]
  /** Passed on stdin, for commands with `-z --stdin`. */
  readonly stdinPaths?: readonly string[]
  readonly stdin?: Uint8Array
  readonly env?: Readonly<Record<string, string>>
  /** Files that need a filter are used unfiltered, or make git fail. */
  readonly filtered?: 'as_is' | 'refused'
  readonly timeMs: number
}

/** Used before the configuration is known: sufficient to locate the repository, which starts no program. */
export const NO_CONFIG: GitConfig = { filters: [], hooks: [], hasIdentity: false }

/** Limits for names of filters and hooks, which are passed in the environment. */
const MAX_NAMES = 256
const MAX_NAME_CHARS = 16 * 1024

export function callGit(
  { runTool, folder, config, commonFolder, signal }: GitFolder,
  call: GitCall,
): Promise<RunningTool> {
  const settings = [...Object.entries(SETTINGS), ...disableCommands(config, call.filtered ?? 'as_is')]
  return runTool({
    ...argumentsOf(call),
    folder,
    env: { ...ENVIRONMENT, ...call.env, ...privateConfig(commonFolder), ...toEnvironment(settings) },
    timeMs: call.timeMs,
    ...(signal === undefined ? {} : { signal }),
  })
}

function privateConfig(commonFolder: string | undefined): Record<string, string> {
  return commonFolder === undefined ? {} : { GIT_COMMON_DIR: commonFolder, GIT_CONFIG_GLOBAL: '/dev/null' }
}

/** Lists all settings. Includes the system's configuration, so that its filters are disabled too. */
export function startConfigListing(
  runTool: RunTool,
  { folder, globalConfig, timeMs }: { folder: number; globalConfig: string; timeMs: number },
): Promise<RunningTool> {
  const { GIT_CONFIG_NOSYSTEM: _, ...env } = ENVIRONMENT
  return runTool({
    argv: ['git', 'config', '--list', '--includes', '--show-scope', '--null'],
    folder,
    env: { ...env, GIT_CONFIG_GLOBAL: globalConfig, ...toEnvironment(Object.entries(SETTINGS)) },
    timeMs,
  })
}

/** Parses the configured names. Throws `git_failed` when a program cannot be disabled. */
export function parseConfigNames(names: readonly string[]): GitConfig {
  if (!names.includes(VERSION_PROBE) || !names.includes(GLOBAL_PROBE))
    throw new SandwireError('git_failed', 'Cannot use git: version 2.32 or newer is required')
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
  // Environment variables are strings here. A filter that cannot be named cannot be overridden and would be run.
  if (!text.isWellFormed())
    throw new SandwireError('git_failed', 'Cannot use git: the name of a filter or hook is not UTF-8')
  if (found.size > MAX_NAMES || text.length > MAX_NAME_CHARS)
    throw new SandwireError('git_failed', 'Cannot use git: too many filters or hooks are configured')
  return [...found]
}

/** An empty command disables a filter; a required filter without a command makes git fail. */
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

/** In the environment instead of `-c`, which splits a filter's name at the first `=`. */
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
  // Bun passes arguments as strings; xargs passes bytes unchanged.
  return { argv: ['xargs', '-0', 'git', ...args, '--'], stdin: joinPaths(both) }
}

function joinPaths(paths: readonly string[]): Uint8Array {
  return Buffer.concat(paths.flatMap((path) => [pathToBytes(path) ?? new Uint8Array(), Uint8Array.of(0)]))
}

/** Longest message of git that is shown. */
const MAX_MESSAGE_CHARS = 200

/** Reads at most this many bytes; ends git when there are more. */
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

/** Yields NUL-separated tokens. Ending early ends git. */
export async function* readTokens(tool: RunningTool): AsyncGenerator<Uint8Array, void> {
  const tokens = new NulTokens()
  for await (const chunk of tool.stdout) {
    tokens.push(chunk)
    for (let token = tokens.next(); token !== undefined; token = tokens.next()) yield token
  }
}

/** Reads one line of output. */
export async function readLine(tool: RunningTool): Promise<string> {
  const { bytes } = await readBytes(tool, 64 * 1024)
  return bytes.toString().replace(/\n$/, '')
}

/** Waits for git to exit. Throws `timed_out`, or `git_failed` with git's message. */
export async function expectSuccess(tool: RunningTool, action: string): Promise<void> {
  const { code, isLate } = await tool.exited
  if (isLate) throw new SandwireError('timed_out', `${action}: git timed out`)
  if (code !== 0) throw new SandwireError('git_failed', `${action}: ${describeFailure(await tool.stderr)}`)
}

/** Git's error line for the user, with printable characters only. No decision depends on it. */
function describeFailure(stderr: string): string {
  const lines = stderr.split('\n').filter((line) => line.trim() !== '')
  const why =
    lines.find((line) => /^(fatal|error): /.test(line)) ?? lines[0] ?? 'git failed without a message'
  return printable(why.replace(/^(fatal|error): /, '')).slice(0, MAX_MESSAGE_CHARS)
}

/** Replaces control, format and bidirectional characters. */
function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?')
}

/** Splits a byte stream at NUL. */
export class NulTokens {
  #chunk: Uint8Array = new Uint8Array()
  #at = 0
  /** Start of an incomplete token. */
  #begun: Uint8Array[] = []

  /** Adds bytes; earlier tokens must have been taken. */
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

  /** The remaining bytes. */
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
