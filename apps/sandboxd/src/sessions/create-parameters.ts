import type { Overflow } from '@sandwire/protocol'

/** Parameters of a process to start. */
export interface CreateParameters {
  /** Empty means the server's shell. */
  readonly argv: readonly string[]
  readonly mode: 'pipe' | 'pty'
  readonly cwd: string | undefined
  readonly keepSeconds: number
  readonly overflow: Overflow
  /** Keeps the sandbox from being stopped for idleness. */
  readonly isPinned: boolean
}
