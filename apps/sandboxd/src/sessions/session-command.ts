import type { StartParameters } from '@sandwire/protocol'
import { MARKER_VARIABLE } from '../processes/tree/process-table.ts'
import type { ProcessSpec } from '../processes/process.ts'

/** What a session runs; environment and size come with the first hello. */
export interface SessionCommand {
  readonly argv: readonly [string, ...string[]]
  readonly cwd: string
  /** The pane of tmux that the session shows instead of running `argv`. */
  readonly pane?: string
  readonly baseEnv: Readonly<Record<string, string>>
  /** Overrides the hello's environment. */
  readonly fixedEnv?: Readonly<Record<string, string>>
  readonly isPinned: boolean
  /** Made from a template of the operator, so that typing into it does not amount to running any command. */
  readonly isTemplate: boolean
  /** The grant that authorized the request; absent: the owner's access. */
  readonly grant?: string
  /** Set for the interface of a coding agent. */
  readonly agentTui?: {
    /** The conversation that its arguments name. */
    readonly conversation: string | undefined
  }
  /** The run of a coding agent that opened the session; absent: an account did. */
  readonly agentRun?: string
  /** The request that created the session, for the log. */
  readonly requestId: string
}

/** The process of a session, with environment and size of the first hello. */
export function createProcessSpec(
  command: SessionCommand,
  { env, cols, rows }: StartParameters,
  session: { readonly id: string; readonly mode: ProcessSpec['mode'] },
): ProcessSpec {
  const { id, mode } = session
  const { argv, cwd, baseEnv, fixedEnv } = command
  const terminal = mode === 'pty' && env['TERM'] === undefined ? { TERM: 'xterm-256color' } : {}
  return {
    argv,
    cwd,
    mode,
    cols,
    rows,
    env: {
      ...baseEnv,
      ...terminal,
      ...env,
      ...fixedEnv,
      [MARKER_VARIABLE]: id,
    },
  }
}
