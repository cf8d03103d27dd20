import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import path from 'node:path'
import { STOP_REASON_FILE } from '@sandwire/internal-api'
import { parseStopReason, type StopReason } from '@sandwire/protocol'
import { HANGUP_MS } from './processes/process.ts'
import type { TerminationTimeouts } from './processes/tree/terminate-tree.ts'
import type { ListenAddress } from './server.ts'

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

/** Left at the end to deliver the last output of a process that was killed. */
const FINAL_OUTPUT_MS = 1_000

/** Longer than any reason. */
const MAX_REASON_BYTES = 64

const DESCRIPTIONS: Readonly<Record<StopReason, string>> = {
  requested: ' on request',
  idle: ' because it was idle',
  removed: ' because it is being removed',
  shutting_down: ' because its host is shutting down',
  unclaimed: ' because its host is gone',
}

/** Divides the time; a short one keeps the proportions. */
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
    timeouts: { hangupMs, terminateMs: totalMs - hangupMs - finalOutputMs },
  }
}

/** Reads the reason that a supervisor wrote beside the socket; undefined when there is none or it is unknown. */
export function readStopReason(address: ListenAddress): StopReason | undefined {
  if (address.kind !== 'unix') return undefined
  return parseStopReason(readShortFile(path.join(path.dirname(address.path), STOP_REASON_FILE)))
}

/** Processes of this user can create the file too, so links, pipes and endless files must not block or mislead. */
function readShortFile(file: string): string | undefined {
  try {
    const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      if (!fstatSync(fd).isFile()) return undefined
      const bytes = new Uint8Array(MAX_REASON_BYTES)
      return new TextDecoder().decode(bytes.subarray(0, readSync(fd, bytes)))
    } finally {
      closeSync(fd)
    }
  } catch {
    // There is no such file.
    return undefined
  }
}
