import type { Launcher } from './family/launcher.ts'
import type { AsVictim } from './family/oom-score.ts'
import type { AwaitedChildren } from './family/orphan-reaper.ts'

/** Time a descendant may hold the output silently after the leader's exit. */
export const DRAIN_MS = 2_000
/** Output awaited from descendants after the leader's exit. */
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
  /** Words in front of every command, which make it run as another user; none when there is none. */
  readonly launcher: Launcher | undefined
  /** Around every start: gives processes the score of those that are ended first when memory runs out. */
  readonly asVictim: AsVictim
  /** Told of every child whose exit is awaited. */
  readonly children: AwaitedChildren
  /** Monotonic milliseconds. */
  readonly now: () => number
}
