import type { StartParameters } from '@sandwire/protocol'
import { MARKER_VARIABLE } from '../processes/family/process-tree.ts'
import type { ProcessSpec } from '../processes/process.ts'

/** What to run when the session starts; environment and size come with the first hello. */
export interface HostedCommand {
  readonly argv: readonly [string, ...string[]]
  readonly cwd: string
  readonly baseEnv: Readonly<Record<string, string>>
  /** Over what a hello says. */
  readonly fixedEnv?: Readonly<Record<string, string>>
  /** Keeps the sandbox awake while it runs. */
  readonly isPinned: boolean
  /** Made of a template of the operator: whoever types into it cannot run what they like. */
  readonly isTemplate: boolean
  /** The request that asked for it, for the log. */
  readonly requestId: string
}

/** The process of a session, as the first hello wants it. */
export function specify(
  command: HostedCommand,
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
