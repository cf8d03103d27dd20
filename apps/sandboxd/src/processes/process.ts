import type { TerminationTimeouts } from './family/terminate-family.ts'

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
  /** True when output was cut because a descendant kept the stream open past the drain clock. */
  readonly truncated: boolean
}

/** Why bytes offered to `write` did not reach the process. */
export type InputRefusal = 'line_too_long'

/** What a process tells its owner. `ended` comes once, after the last `output`. */
export interface ProcessEvents {
  /** One chunk of output. The chunk belongs to the receiver from then on. */
  output(stream: 'stdout' | 'stderr', chunk: Uint8Array): void
  /** `bytes` more of the input were written to the process (refused ones count too: they are settled). */
  inputSettled(bytes: number): void
  /** A canonical-mode line is too long and is dropped, with what is yet to come of it. Told once for the line, before it settles. */
  inputRefused(reason: InputRefusal): void
  /** Nobody will read stdin any more; queued and later bytes are settled without being written. */
  inputClosed(): void
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
  /** Stops reading output; the process blocks when the kernel's buffer is full. */
  pause(): void
  resume(): void
  /** Runs the HUP, TERM, KILL ladder over the group and its known descendants; resolves when none is left. */
  terminate(timeouts?: TerminationTimeouts): Promise<void>
}

/** Starts a process, or says why it cannot be started. */
export type StartProcess = (spec: ProcessSpec, events: ProcessEvents) => RunningProcess | SpawnFailure

export interface SpawnFailure {
  readonly failure: 'not_found' | 'not_executable' | 'spawn_failed'
  readonly message: string
}
