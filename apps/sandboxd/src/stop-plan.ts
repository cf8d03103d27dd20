import type { KillLadderLimits } from './processes/family/kill-ladder.ts'
import { HANGUP_MS } from './processes/start-options.ts'

/** How the time between the request to stop and the end is spent. */
export interface StopPlan {
  /** All of it: what attachments are told, and when the last connection is closed. */
  readonly totalMs: number
  /** What attachments are told when it begins. */
  readonly message: string
  /** How long processes may take to end by themselves. */
  readonly patience: KillLadderLimits
}

/** Seconds between the request to stop and the end. The host waits for 5 s, `docker stop` for 10. */
export const DEFAULT_STOP_SECONDS = 4

/** What is left at the end for the last bytes of a process that had to be killed. */
const LAST_WORDS_MS = 1_000

/** Shares out the time of a stop; short ones keep the proportions. `why` is told along. */
export function planStop(totalMs: number, why?: string): StopPlan {
  const hangupMs = Math.min(HANGUP_MS, totalMs / 4)
  const lastWordsMs = Math.min(LAST_WORDS_MS, totalMs / 4)
  const because = why === undefined ? '' : ` because ${why}`
  return {
    totalMs,
    message: `The sandbox is stopping${because}: it ends within ${Math.ceil(totalMs / 1000)} s`,
    patience: { hangupMs, terminateMs: totalMs - hangupMs - lastWordsMs },
  }
}
