import { type ErrorCode, SandwireError } from '@sandwire/protocol'
import {
  DRAIN_BYTES,
  DRAIN_MS,
  type ProcessSpec,
  type SpawnFailure,
  type StartOptions,
} from '../processes/process.ts'
import { isFailure, resolveCommand } from '../processes/resolve-command.ts'
import type { WithOomScore } from '../processes/tree/oom-score.ts'
import type { AwaitedChildren } from '../processes/tree/orphan-reaper.ts'
import type { ProcessScanner } from '../processes/tree/process-scanner.ts'
import type { UserContext } from '../processes/run-as.ts'
import { startTool, type ToolProcess } from './tool-process.ts'
import { Semaphore, type SemaphoreLimits } from './semaphore.ts'

/** Exit code when the folder cannot be entered and the program was not started. */
export const CANNOT_ENTER = 125

/** A program that works on the workspace, such as ripgrep or git. */
export interface ToolPlan {
  /** Program and arguments; no shell interprets them. */
  readonly argv: readonly [string, ...string[]]
  /** Working directory, an open descriptor. The caller closes it after the program was started. */
  readonly folder: number
  /** Added to PATH, HOME and the locale, which are the user's. */
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: Uint8Array
  /** Ends the program and its descendants. */
  readonly signal?: AbortSignal
  /** Timeout. */
  readonly timeMs: number
}

export interface RunningTool {
  /** A pipe with backpressure. It must be read to its end or canceled; canceling ends the program. */
  readonly stdout: ReadableStream<Uint8Array>
  /** The last bytes of stderr, after the program ended. */
  readonly stderr: Promise<string>
  readonly exited: Promise<{
    readonly code: number | null
    readonly signal: string | null
    /** It was ended by the timeout. */
    readonly isLate: boolean
  }>
}

/**
 * Runs a program as the workspace's user. Rejects with `command_not_found` when it is not installed, with `rate_limited` when
 * too many wait, and with the signal's reason when it is canceled before it starts.
 */
export type RunTool = (plan: ToolPlan) => Promise<RunningTool>

/** A few programs keep a small machine busy; a page that sends many requests waits a little. */
const TOOL_LIMITS: SemaphoreLimits = {
  capacity: 8,
  maxWaiting: 64,
  refusal: 'Cannot run the program: too many are running',
}

/** Delay from HUP to TERM and from TERM to KILL: git removes its lock files on a signal. */
const HANGUP_MS = 200
const TERMINATE_MS = 1_000

/** Variables of the user's environment that are passed on. */
const PASSED_ON = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'LC_CTYPE'] as const

const SHELL = '/bin/sh'
/** Enters the folder by its descriptor, which is then closed, so that a rename cannot redirect it. */
const ENTER_FOLDER = `cd -P /proc/self/fd/3 2>/dev/null || { echo 'cannot enter the folder' >&2; exit ${CANNOT_ENTER}; }
unset PWD OLDPWD
exec "$@" 3<&-`

const CODES: Readonly<Record<SpawnFailure['failure'], ErrorCode>> = {
  not_found: 'command_not_found',
  not_executable: 'command_not_executable',
  spawn_failed: 'spawn_failed',
}

interface RunToolDependencies {
  readonly baseEnv: Readonly<Record<string, string>>
  readonly user: UserContext
  readonly children: AwaitedChildren
  readonly scanner: ProcessScanner
  readonly withOomScore: WithOomScore
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly limits?: SemaphoreLimits
}

export function createRunTool({ baseEnv, user, limits, ...deps }: RunToolDependencies): RunTool {
  const semaphore = new Semaphore(limits ?? TOOL_LIMITS)
  const env = pick(baseEnv)
  const start: StartOptions = {
    ...deps,
    drainMs: DRAIN_MS,
    drainBytes: DRAIN_BYTES,
    hangupMs: HANGUP_MS,
    terminateMs: TERMINATE_MS,
    launcher: user.launcher,
  }
  return async (plan) => {
    const release = await semaphore.acquire(1, plan.signal)
    try {
      const tool = user.asUser(() => run(plan, { ...env, ...plan.env }, start))
      void tool.exited.then(release)
      return tool
    } catch (error) {
      release()
      throw error
    }
  }
}

function pick(baseEnv: Readonly<Record<string, string>>): Record<string, string> {
  const env: Record<string, string> = {}
  for (const name of PASSED_ON) {
    const value = baseEnv[name]
    if (value !== undefined) env[name] = value
  }
  return env
}

function run(plan: ToolPlan, env: Readonly<Record<string, string>>, start: StartOptions): ToolProcess {
  const spec: ProcessSpec = { argv: plan.argv, cwd: '/', env, mode: 'pipe', cols: 0, rows: 0 }
  const command = resolveCommand(spec)
  if (isFailure(command)) throw toError(command)
  // Resolved before, so that no file in the folder is run instead.
  const argv = [SHELL, '-c', ENTER_FOLDER, SHELL, command.file, ...plan.argv.slice(1)]
  const tool = startTool({ spec, file: SHELL, argv }, plan.folder, {
    start,
    stdin: plan.stdin,
    signal: plan.signal,
    timeMs: plan.timeMs,
  })
  if (isFailure(tool)) throw toError(tool)
  return tool
}

function toError({ failure, message }: SpawnFailure): SandwireError {
  return new SandwireError(CODES[failure], message)
}
