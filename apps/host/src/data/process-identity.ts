import { readFileSync, readlinkSync } from 'node:fs'

/** Identifies a process, even after its pid is reused. */
export interface ProcessIdentity {
  readonly pid: number
  /** Start time in clock ticks since boot. */
  readonly startTicks: number
}

/** Parses the start time from `/proc/PID/stat`: field 22, counted after the name, which may contain anything. */
export function parseStartTicks(stat: string): number | undefined {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  // A zombie has ended, unless further threads still hold its ports and files.
  if (fields[0] === 'X' || (fields[0] === 'Z' && Number(fields[17]) <= 1)) return undefined
  const ticks = Number(fields[19])
  return Number.isSafeInteger(ticks) && ticks > 0 ? ticks : undefined
}

/** The process that has this pid now, if any. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  try {
    const startTicks = parseStartTicks(readFileSync(`/proc/${pid}/stat`, 'utf8'))
    return startTicks === undefined ? undefined : { pid, startTicks }
  } catch {
    // No such process.
    return undefined
  }
}

/** True while this process runs. */
export function isRunning(identity: ProcessIdentity): boolean {
  return identifyProcess(identity.pid)?.startTicks === identity.startTicks
}

/** Path of a process's executable, if readable. */
export function programOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/exe`)
  } catch {
    // Ended, or another user's.
    return undefined
  }
}
