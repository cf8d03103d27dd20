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
