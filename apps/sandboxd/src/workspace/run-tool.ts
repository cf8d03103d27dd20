import { type ErrorCode, SandwireError } from '@sandwire/protocol'
import type { WithOomScore } from '../processes/tree/oom-score.ts'
import type { AwaitedChildren } from '../processes/tree/orphan-reaper.ts'
import {
  DRAIN_BYTES,
  DRAIN_MS,
  type ProcessSpec,
  type SpawnFailure,
  type StartOptions,
} from '../processes/process.ts'
import { isFailure, resolveCommand } from '../processes/resolve-command.ts'
import type { UserSwitch } from '../processes/tree/run-as.ts'
import { startTool, type ToolProcess } from './tool-process.ts'
import { type SlotLimits, ToolSlots } from './tool-slots.ts'
import { CANNOT_ENTER, type RunTool, type ToolPlan } from './tool.ts'

/** A handful keeps a small machine busy; a page that asks for everything at once waits a little. */
const TOOL_SLOTS: SlotLimits = {
  maxRunning: 8,
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

export interface RunToolDependencies {
  readonly baseEnv: Readonly<Record<string, string>>
  readonly user: UserSwitch
  readonly children: AwaitedChildren
  readonly withOomScore: WithOomScore
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly slots?: SlotLimits
}

/** Runs programs on the workspace: as its user, in an open folder, some at a time. */
export function createRunTool({ baseEnv, user, slots, ...deps }: RunToolDependencies): RunTool {
  const turns = new ToolSlots(slots ?? TOOL_SLOTS)
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
    const endTurn = await turns.take(plan.signal)
    try {
      const tool = user.asUser(() => run(plan, { ...env, ...plan.env }, start))
      void tool.exited.then(endTurn)
      return tool
    } catch (error) {
      endTurn()
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
