import type { SessionRunner } from '../sessions/session-runner.ts'

/** A session in API responses. Times are milliseconds since the epoch. */
export interface SessionView {
  readonly id: string
  readonly state: 'pending' | 'running' | 'exited' | 'gone'
  readonly mode: 'pipe' | 'pty'
  /** First characters of the command. */
  readonly cmd: string
  /** The pane of tmux that the session shows. */
  readonly pane?: string
  /** The run of a coding agent that opened it. */
  readonly agentRun?: string
  /** It is the interface of a coding agent. */
  readonly agentInterface?: true
  readonly pid: number | null
  readonly attachments: number
  /** Names of some attached users. */
  readonly people: readonly string[]
  readonly driver: string | null
  readonly output: { readonly start: number; readonly end: number }
  readonly createdMs: number
  readonly lastInputMs: number | null
  readonly lastOutputMs: number | null
  readonly keepSeconds: number
  readonly overflow: 'block' | 'trim'
  /** The process has started and not exited. */
  readonly running: boolean
  /** The sandbox does not become idle while the process runs. */
  readonly pinned: boolean
  readonly exit: {
    readonly code: number | null
    readonly signal: string | null
    readonly truncated: boolean
  } | null
}

/** Control reads all sessions in one response, so each is bounded. */
const MAX_SHOWN_CHARS = 128
const MAX_SHOWN_PEOPLE = 8

/** Converts a monotonic time to milliseconds since the epoch. */
export function toWall(ms: number | null, epochMs: number): number | null {
  return ms === null ? null : Math.round(epochMs + ms)
}

/** `epochMs` is the wall time at which the monotonic clock was zero. */
export function viewSession(runner: SessionRunner, epochMs: number): SessionView {
  const { session, command, pid } = runner
  const { state, options, attachments, log } = session
  return {
    id: session.id,
    state: state.kind,
    mode: options.mode,
    cmd: command.argv[0].slice(0, MAX_SHOWN_CHARS),
    ...(command.pane === undefined ? {} : { pane: command.pane }),
    ...(command.agentRun === undefined ? {} : { agentRun: command.agentRun }),
    ...(command.agentTui === undefined ? {} : { agentInterface: true }),
    pid: state.kind === 'running' ? (pid ?? null) : null,
    attachments: attachments.attachedCount,
    people: attachments.people.slice(0, MAX_SHOWN_PEOPLE),
    driver: attachments.lease.holder,
    output: { start: log.start, end: log.end },
    createdMs: Math.round(epochMs + session.createdMs),
    lastInputMs: toWall(session.lastInputMs, epochMs),
    lastOutputMs: toWall(session.lastOutputMs, epochMs),
    keepSeconds: options.keepSeconds,
    overflow: options.overflow,
    running: state.kind === 'running',
    pinned: command.isPinned,
    exit: state.kind === 'exited' ? state.exit : null,
  }
}
