import type { KillLadderLimits } from './processes/family/kill-ladder.ts'
import { HANGUP_MS } from './processes/start-options.ts'

/** How the time between the request to stop and the end is spent. */
export interface StopPlan {
  /** All of it: what attachments are told, and when the last connection is closed. */
  readonly totalMs: number
  /** How long processes may take to end by themselves. */
  readonly patience: KillLadderLimits
}

/** Seconds between the request to stop and the end. The host waits for 5 s, `docker stop` for 10. */
export const DEFAULT_STOP_SECONDS = 4

/** What is left at the end for the last bytes of a process that had to be killed. */
const LAST_WORDS_MS = 1_000

/** Shares out the time of a stop; short ones keep the proportions. */
export function planStop(totalMs: number): StopPlan {
  const hangupMs = Math.min(HANGUP_MS, totalMs / 4)
  const lastWordsMs = Math.min(LAST_WORDS_MS, totalMs / 4)
  return { totalMs, patience: { hangupMs, terminateMs: totalMs - hangupMs - lastWordsMs } }
}
