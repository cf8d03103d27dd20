import { constants } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { pollUntil } from '../poll.ts'
import type { LaunchedSandbox } from './isolation.ts'
import { signalProcess } from './process-table.ts'

/** Time for the kernel to tear down a killed sandbox. */
const TEARDOWN_MS = 10_000

/** A started process tree, and how to end it. */
export interface LaunchedParts {
  readonly child: Bun.Subprocess<'ignore', 'pipe', 'pipe'>
  /** Host uid of sandboxd; the current user unless given. */
  readonly daemonUid?: number
  /** Host pid of sandboxd, while it runs. */
  readonly findDaemon: () => number | undefined
  /** Kills everything; called repeatedly until `isGone`. */
  readonly killAll: () => void
  readonly isGone: () => boolean
  /** Removes what the launch created, after all processes have ended. */
  readonly cleanUp: () => void
  /** True when the kernel's OOM killer acted since the launch. */
  readonly ranOutOfMemory: () => boolean
  readonly limitGrowth?: (bytes: number) => void
}

/** Names the end of a process: `exit_N` or `signal_NAME`. Bubblewrap and shells exit with 128 + N for signal N. */
export function describeEnd(code: number | null, signal: string | number | null): string {
  if (typeof signal === 'string') return nameSignal(signal)
  const number = signal ?? (code ?? 0) - 128
  const found = Object.entries(constants.signals).find(([, value]) => value === number)
  return found === undefined ? `exit_${code ?? 0}` : nameSignal(found[0])
}

function nameSignal(name: string): string {
  return `signal_${name.replace(/^SIG/, '')}`
}

/** Follows a launched sandbox until it ends. */
export class Launched implements LaunchedSandbox {
  readonly pid: number
  readonly daemonUid: number
  readonly stdout: LaunchedSandbox['stdout']
  readonly stderr: LaunchedSandbox['stderr']
  readonly ended: Promise<string>
  readonly limitGrowth?: (bytes: number) => void
  readonly #parts: LaunchedParts
  /** Set when this process ended it. */
  #verdict: string | undefined

  constructor(parts: LaunchedParts) {
    this.#parts = parts
    this.pid = parts.child.pid
    this.daemonUid = parts.daemonUid ?? process.getuid?.() ?? 0
    this.stdout = parts.child.stdout
    this.stderr = parts.child.stderr
    if (parts.limitGrowth !== undefined) this.limitGrowth = parts.limitGrowth
    this.ended = this.#watch()
  }

  findDaemon(): number | undefined {
    return this.#parts.findDaemon()
  }

  async stop(graceMs: number): Promise<void> {
    const daemon = this.#parts.findDaemon()
    if (daemon !== undefined) {
      signalProcess(daemon, 'SIGTERM')
      const timer = sleep(graceMs, undefined, { ref: false })
      await Promise.race([this.#parts.child.exited, timer])
    }
    this.#parts.killAll()
    await this.ended
  }

  /** Kills everything; `ended` resolves with this reason. */
  terminate(reason: string): void {
    this.#verdict ??= reason
    this.#parts.killAll()
  }

  async #watch(): Promise<string> {
    const { child, killAll, isGone, cleanUp, ranOutOfMemory } = this.#parts
    await child.exited
    const wasKilled = child.signalCode === 'SIGKILL' || child.exitCode === 128 + constants.signals.SIGKILL
    const reason = wasKilled && ranOutOfMemory() ? 'oom' : describeEnd(child.exitCode, child.signalCode)
    const isDone = await pollUntil(() => {
      if (isGone()) return true
      killAll()
      return false
    }, TEARDOWN_MS)
    if (isDone) cleanUp()
    return this.#verdict ?? reason
  }
}
