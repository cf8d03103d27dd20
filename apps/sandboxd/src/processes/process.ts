import type { WithOomScore } from './tree/oom-score.ts'
import type { AwaitedChildren } from './tree/orphan-reaper.ts'
import type { ProcessScanner } from './tree/process-scanner.ts'
import type { Launcher } from './run-as.ts'
import type { TerminationTimeouts } from './tree/terminate-tree.ts'

/** What to run. `argv[0]` is looked up on `env.PATH` unless it contains a slash. */
export interface ProcessSpec {
  readonly argv: readonly [string, ...string[]]
  /** Absolute path of an existing directory. */
  readonly cwd: string
  /** The whole environment of the child; nothing is inherited. */
  readonly env: Readonly<Record<string, string>>
  readonly mode: 'pipe' | 'pty'
  /** Terminal size before the first byte; ignored in pipe mode. */
  readonly cols: number
  readonly rows: number
}

/** How a process ended; exactly one of `code` and `signal` is set. */
export interface ProcessEnd {
  readonly code: number | null
  readonly signal: string | null
  /** True when reading ended while a descendant still held the stream open. */
  readonly truncated: boolean
}

/** Why bytes offered to `write` did not reach the process. */
export type InputRefusal = 'line_too_long'

/** Events of a process. `ended` comes once, after the last `output`. */
export interface ProcessEvents {
  /** One chunk of output. The chunk belongs to the receiver from then on. */
  output(stream: 'stdout' | 'stderr', chunk: Uint8Array): void
  /** `bytes` more of the input were written to the process, or refused. */
  inputSettled(bytes: number): void
  /** A canonical-mode line is too long and is dropped to its end. Called once per line, before its bytes are settled. */
  inputRefused(reason: InputRefusal): void
  /** Stdin has no reader any more; queued and later bytes are settled without being written. */
  inputClosed(): void
  /** The terminal has another size, which its process chose. */
  resized(cols: number, rows: number): void
  ended(end: ProcessEnd): void
}

/** A running process. No method throws once the process has ended. */
export interface RunningProcess {
  readonly pid: number
  /** Queues input in order. The caller bounds what is unsettled. */
  write(chunk: Uint8Array): void
  /** Pipe: closes stdin after what is queued. PTY: writes VEOF after what is queued. */
  closeInput(): void
  /** Sets the window size after what is queued, and raises SIGWINCH. No-op in pipe mode. */
  resize(cols: number, rows: number): void
  /** Delivers a signal at once, ahead of queued input: to the process group, or for a PTY's INT, QUIT and TSTP through TIOCSIG. */
  signal(name: string): void
  /** True while a terminal edits lines without showing them, as for a password. Absent: unknown. */
  isReadingSecret?(): boolean
  /** Stops reading output; the process blocks when the kernel's buffer is full. */
  pause(): void
  resume(): void
  /** Sends HUP, TERM and KILL in turn to the process tree; resolves when none of it is left. */
  terminate(timeouts?: TerminationTimeouts): Promise<void>
}

/** Starts a process, or returns why it cannot be started. */
export type StartProcess = (spec: ProcessSpec, events: ProcessEvents) => RunningProcess | SpawnFailure

export interface SpawnFailure {
  readonly failure: 'not_found' | 'not_executable' | 'spawn_failed'
  readonly message: string
}

/** Longest pause in the output of descendants after the leader's exit. */
export const DRAIN_MS = 2_000
/** Most output that is read from descendants after the leader's exit. */
export const DRAIN_BYTES = 8 * 1024 * 1024
/** From HUP to TERM when a process is ended. */
export const HANGUP_MS = 500
/** From TERM to KILL when a process is ended. */
export const TERMINATE_MS = 2_000

export interface StartOptions {
  readonly drainMs: number
  readonly drainBytes: number
  readonly hangupMs: number
  readonly terminateMs: number
  /** Prefixes every command to run it as another user. */
  readonly launcher: Launcher | undefined
  /** Runs every start with an OOM score that makes the kernel kill the process before sandboxd. */
  readonly withOomScore: WithOomScore
  /** Every child whose exit status Bun collects. */
  readonly children: AwaitedChildren
  /** Finds the processes of every tree. */
  readonly scanner: ProcessScanner
  /** Monotonic milliseconds. */
  readonly now: () => number
}
