import type { SessionHost } from '../sessions/session-host.ts'

/** A session as the API shows it. Times are milliseconds since the epoch. */
export interface SessionView {
  readonly id: string
  readonly state: 'pending' | 'running' | 'exited' | 'gone'
  readonly mode: 'pipe' | 'pty'
  readonly cmd: string
  readonly pid: number | null
  readonly attachments: number
  readonly driver: string | null
  readonly output: { readonly start: number; readonly end: number }
  readonly lastInputMs: number | null
  readonly lastOutputMs: number | null
  readonly keepSeconds: number
  readonly overflow: 'block' | 'trim'
  readonly exit: {
    readonly code: number | null
    readonly signal: string | null
    readonly truncated: boolean
  } | null
}

/** `epochMs` is when the monotonic clock read zero. */
export function viewSession(host: SessionHost, epochMs: number): SessionView {
  const { session, command, pid } = host
  const { state, options, roster, log } = session
  const wall = (ms: number | null): number | null => (ms === null ? null : Math.round(epochMs + ms))
  return {
    id: session.id,
    state: state.is,
    mode: options.mode,
    cmd: command.argv[0],
    pid: state.is === 'running' ? (pid ?? null) : null,
    attachments: roster.attachedCount,
    driver: roster.lease.holder,
    output: { start: log.start, end: log.end },
    lastInputMs: wall(session.lastInputMs),
    lastOutputMs: wall(session.lastOutputMs),
    keepSeconds: options.keepSeconds,
    overflow: options.overflow,
    exit: state.is === 'exited' ? state.exit : null,
  }
}
