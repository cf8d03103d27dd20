import type { StopReason } from '@sandwire/protocol'
import { HANGUP_MS } from './processes/process.ts'
import type { TerminationTimeouts } from './processes/tree/terminate-tree.ts'

/** How the time between the request to stop and the exit of sandboxd is divided. */
export interface ShutdownPlan {
  /** When the last connection is closed. */
  readonly totalMs: number
  /** Sent to every attachment when the shutdown begins. */
  readonly notice: { readonly message: string; readonly reason?: StopReason }
  /** How long processes may take to exit after each signal. */
  readonly timeouts: TerminationTimeouts
}

/** Seconds between the request to stop and the exit. The host waits for 5 s, `docker stop` for 10. */
export const DEFAULT_STOP_SECONDS = 4

/** Reserved at the end to deliver the last output of a process that was killed. */
const FINAL_OUTPUT_MS = 1_000

const DESCRIPTIONS: Readonly<Record<StopReason, string>> = {
  requested: ' on request',
  idle: ' because it was idle',
  removed: ' because it is being removed',
  shutting_down: ' because its host is shutting down',
  unclaimed: ' because its host is gone',
}

/** Splits the shutdown time into phases; short times are scaled down. */
export function planShutdown(totalMs: number, reason?: StopReason): ShutdownPlan {
  const hangupMs = Math.min(HANGUP_MS, totalMs / 4)
  const finalOutputMs = Math.min(FINAL_OUTPUT_MS, totalMs / 4)
  const why = reason === undefined ? '' : DESCRIPTIONS[reason]
  return {
    totalMs,
    notice: {
      message: `The sandbox is stopping${why}: it ends within ${Math.ceil(totalMs / 1000)} s`,
      ...(reason === undefined ? {} : { reason }),
    },
    timeouts: { hangupMs, terminateMs: totalMs - hangupMs - finalOutputMs, giveUpMs: finalOutputMs },
  }
}
