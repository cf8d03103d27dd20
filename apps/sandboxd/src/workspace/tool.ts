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
import type { UserSwitch } from '../processes/tree/run-as.ts'
import { startTool, type ToolProcess } from './tool-process.ts'
import { Semaphore, type SemaphoreLimits } from './semaphore.ts'

/** Exit code when the user may list the folder but not enter it, so that the program was not started. */
export const CANNOT_ENTER = 125

/** A program that does something with the workspace, such as ripgrep or git. */
export interface ToolPlan {
  /** The program and its arguments, none of them from a shell. */
  readonly argv: readonly [string, ...string[]]
  /** Open folder that it starts in. It stays the caller's to close, and open until the program has been started. */
  readonly folder: number
  /** All of its environment but PATH, HOME and the language, which are the user's. */
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: Uint8Array
  /** Ends it, and everything it started. */
  readonly signal?: AbortSignal
  /** Ended when it takes longer. */
  readonly timeMs: number
}

export interface RunningTool {
  /** Real pipe: a reader that waits makes the program wait. Canceling it ends the program. It is to be read to its end, or canceled. */
  readonly stdout: ReadableStream<Uint8Array>
  /** The end of what it said on stderr, after it ended. */
  readonly stderr: Promise<string>
  readonly exited: Promise<{
    readonly code: number | null
    readonly signal: string | null
    /** It was ended because it took too long. */
    readonly isLate: boolean
  }>
}

/**
 * Runs a program as the user of the workspace, once it is its turn. Rejects with `command_not_found` when it is not installed,
 * with `rate_limited` when too many wait, and with the signal's reason when that comes before its turn.
 */
export type RunTool = (plan: ToolPlan) => Promise<RunningTool>

/** A handful keeps a small machine busy; a page that asks for everything at once waits a little. */
const TOOL_LIMITS: SemaphoreLimits = {
  capacity: 8,
  maxWaiting: 64,
  refusal: 'Cannot run more programs on the workspace now',
}

/** From HUP to TERM, and from there to KILL: git removes its lock files when it is told to end. */
const HANGUP_MS = 200
const TERMINATE_MS = 1_000

/** What of the user's environment a program sees. */
const PASSED_ON = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'LC_CTYPE'] as const

const SHELL = '/bin/sh'
/** The folder is entered by its descriptor, which is whatever it was when it was opened, and is not passed on. */
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
  readonly user: UserSwitch
  readonly children: AwaitedChildren
  readonly withOomScore: WithOomScore
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly limits?: SemaphoreLimits
}

/** Runs programs on the workspace: as its user, in an open folder, some at a time. */
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
  // Found already, so that nothing in the folder is taken for it.
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
