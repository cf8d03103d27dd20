import { kill } from '../linux/libc.ts'
import type { Launcher } from './launcher.ts'
import { terminateFamily, type TerminationTimeouts } from './terminate-family.ts'
import { fail } from '../resolve-command.ts'
import type { ProcessSpec, SpawnFailure } from '../process.ts'
import { type Family, findFamily, MARKER_VARIABLE, readProcess, signalProcess } from './process-tree.ts'
import { tagOf, withTag } from './session-tag.ts'
import type { StartOptions } from '../start-options.ts'

export interface ExitStatus {
  readonly code: number | null
  readonly signal: string | null
}

export interface ChildPlan {
  readonly spec: ProcessSpec
  /** Absolute path of what is executed, and all its arguments including the zeroth. */
  readonly file: string
  readonly argv: readonly string[]
  /** What the child has as descriptors 0, 1, 2 and so on. */
  readonly stdio: readonly [number, number, number, ...number[]]
  /** True makes the child lead a session of its own before it executes. */
  readonly leadsSession: boolean
}

/** The shell that runs an executable text file without a `#!` line, as for execvp. */
const FALLBACK_SHELL = '/bin/sh'

/** A spawned leader and everything it may have started. */
export class Child {
  readonly pid: number
  /** Resolves when the leader has been reaped; descendants may live on. */
  readonly exited: Promise<ExitStatus>
  readonly #family: Family
  readonly #options: StartOptions
  #hasExited = false
  #termination: Promise<void> | undefined

  private constructor(leader: Bun.Subprocess, marker: string, options: StartOptions) {
    this.pid = leader.pid
    this.#options = options
    options.children.add(leader.pid)
    // The child cannot have been reaped yet, so even one that has ended is still in the table.
    const leaderStartTicks = readProcess(leader.pid)?.startTicks ?? ''
    this.#family = { leaderPid: leader.pid, leaderStartTicks, marker }
    this.exited = this.#awaitExit(leader)
  }

  static spawn(plan: ChildPlan, options: StartOptions): Child | SpawnFailure {
    const marker = plan.spec.env[MARKER_VARIABLE] ?? crypto.randomUUID()
    const leader = options.asVictim(() => trySpawn(viaLauncher(plan, options.launcher), marker))
    return 'failure' in leader ? leader : new Child(leader, marker, options)
  }

  /** Signals the leader's group. */
  signalGroup(signal: number): void {
    if (this.#hasExited) this.#signalRemains(signal)
    // Until the child leads a group of its own there is only the child.
    else if (kill(-this.pid, signal) < 0) kill(this.pid, signal)
  }

  /** Ends everyone; concurrent calls share one climb. */
  terminate(timeouts: TerminationTimeouts = this.#options): Promise<void> {
    this.#termination ??= terminateFamily(this.#family, timeouts).finally(() => {
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

  /** Once the leader is reaped its number may name another group, so each member is identified first. */
  #signalRemains(signal: number): void {
    for (const member of findFamily(this.#family).members) {
      if (member.groupId === this.pid) signalProcess(member, signal)
    }
  }
}

/** The plan behind words that execute what follows them. They search PATH as we did, so the program keeps its name. */
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
      `the system refused${code === undefined ? '' : ` with ${code}`}`,
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

/** Bun gives a realtime signal, which has no name in its table, as its number. */
function toStatus(code: number | null, signal: string | number | null): ExitStatus {
  if (signal === null) return { code, signal: null }
  return { code: null, signal: typeof signal === 'number' ? `SIG${signal}` : signal }
}

function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}
