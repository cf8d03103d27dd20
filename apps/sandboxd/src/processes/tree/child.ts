import { kill } from '../linux/libc.ts'
import type { Launcher } from '../run-as.ts'
import { terminateTree, type TerminationTimeouts } from './terminate-tree.ts'
import { fail } from '../resolve-command.ts'
import type { ProcessSpec, SpawnFailure, StartOptions } from '../process.ts'
import { MARKER_VARIABLE, readProcess, signalProcess } from './process-table.ts'
import type { ProcessTree } from './process-tree.ts'
import { tagOf, withTag } from './process-tag.ts'

export interface ExitStatus {
  readonly code: number | null
  readonly signal: string | null
}

export interface ChildPlan {
  readonly spec: ProcessSpec
  /** Absolute path of what is executed, and all its arguments including the zeroth. */
  readonly file: string
  readonly argv: readonly string[]
  /** The child's descriptors 0, 1, 2 and so on. */
  readonly stdio: readonly [number, number, number, ...number[]]
  /** Makes the child the leader of a new session. */
  readonly leadsSession: boolean
}

/** Runs an executable text file without a `#!` line, as execvp does. */
const FALLBACK_SHELL = '/bin/sh'

/** A spawned leader and the processes it started. */
export class Child {
  readonly pid: number
  /** Resolves when the leader has been reaped; descendants may live on. */
  readonly exited: Promise<ExitStatus>
  readonly #tree: ProcessTree
  readonly #options: StartOptions
  #hasExited = false
  #termination: Promise<void> | undefined

  private constructor(leader: Bun.Subprocess, marker: string, options: StartOptions) {
    this.pid = leader.pid
    this.#options = options
    options.children.add(leader.pid)
    // The child has not been reaped yet, so it is still in the process table.
    const leaderStartTicks = readProcess(leader.pid)?.startTicks ?? ''
    this.#tree = { leaderPid: leader.pid, leaderStartTicks, marker }
    this.exited = this.#awaitExit(leader)
  }

  static spawn(plan: ChildPlan, options: StartOptions): Child | SpawnFailure {
    const marker = plan.spec.env[MARKER_VARIABLE] ?? crypto.randomUUID()
    const leader = options.withOomScore(() => trySpawn(viaLauncher(plan, options.launcher), marker))
    return 'failure' in leader ? leader : new Child(leader, marker, options)
  }

  /** Signals the leader's group. */
  signalGroup(signal: number): void {
    if (this.#hasExited) void this.#signalMembers(signal)
    // The child may not lead its group yet.
    else if (kill(-this.pid, signal) < 0) kill(this.pid, signal)
  }

  /** Ends the whole tree; concurrent calls share one run. */
  terminate(timeouts: TerminationTimeouts = this.#options): Promise<void> {
    this.#termination ??= terminateTree(this.#tree, timeouts, this.#options.scanner).finally(() => {
      this.#termination = undefined
    })
    return this.#termination
  }

  async #awaitExit(leader: Bun.Subprocess): Promise<ExitStatus> {
    await leader.exited
    this.#hasExited = true
    this.#options.children.delete(this.pid)
    return toStatus(leader.exitCode, leader.signalCode)
  }

  /** After the leader is reaped, its pid may be reused for another group, so each member is identified first. */
  async #signalMembers(signal: number): Promise<void> {
    const { members } = await this.#options.scanner.find(this.#tree)
    for (const member of members) {
      if (member.groupId === this.pid) signalProcess(member, signal)
    }
  }
}

/** The plan with the launcher's prefix. The prefix searches PATH as we did, so the program keeps its name. */
function viaLauncher(plan: ChildPlan, launcher: Launcher | undefined): ChildPlan {
  if (launcher === undefined) return plan
  const { spec } = plan
  const command = spec.env['PATH'] === undefined ? [plan.file, ...plan.argv.slice(1)] : plan.argv
  const { argv, env } = launcher(command, spec.env)
  return { ...plan, spec: { ...spec, env }, file: argv[0], argv }
}

function trySpawn(plan: ChildPlan, marker: string): Bun.Subprocess | SpawnFailure {
  try {
    return withTag(tagOf(marker), () => spawnFile(plan, marker))
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOEXEC' && plan.file !== FALLBACK_SHELL) {
      const argv = [FALLBACK_SHELL, plan.file, ...plan.argv.slice(1)]
      return trySpawn({ ...plan, file: FALLBACK_SHELL, argv }, marker)
    }
    return fail(
      'spawn_failed',
      plan.spec.argv[0],
      `the system refused it${code === undefined ? '' : ` with ${code}`}`,
    )
  }
}

function spawnFile({ spec, file, argv, stdio, leadsSession }: ChildPlan, marker: string): Bun.Subprocess {
  return Bun.spawn([file, ...argv.slice(1)], {
    argv0: argv[0] ?? file,
    cwd: spec.cwd,
    env: { ...spec.env, [MARKER_VARIABLE]: marker },
    stdio: [...stdio],
    detached: leadsSession,
  })
}

/** Bun reports a realtime signal as a number, because it has no name for it. */
function toStatus(code: number | null, signal: string | number | null): ExitStatus {
  if (signal === null) return { code, signal: null }
  return { code: null, signal: typeof signal === 'number' ? `SIG${signal}` : signal }
}

function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}
