import { readFileSync, readlinkSync } from 'node:fs'

/** A process, told apart from a later one with the same number. */
export interface ProcessIdentity {
  readonly pid: number
  /** When it started, in clock ticks since the machine did. */
  readonly startTicks: number
}

/** Reads the start time out of `/proc/PID/stat`: field 22, counted behind the name, which may hold anything. */
export function parseStartTicks(stat: string): number | undefined {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  // A zombie has ended and only its parent has not looked yet; unless further threads still hold its ports and files.
  if (fields[0] === 'X' || (fields[0] === 'Z' && Number(fields[17]) <= 1)) return undefined
  const ticks = Number(fields[19])
  return Number.isSafeInteger(ticks) && ticks > 0 ? ticks : undefined
}

/** The process that has this number now, if one has. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  try {
    const startTicks = parseStartTicks(readFileSync(`/proc/${pid}/stat`, 'utf8'))
    return startTicks === undefined ? undefined : { pid, startTicks }
  } catch {
    // No such process.
    return undefined
  }
}

/** Whether this very process still runs. */
export function isRunning(identity: ProcessIdentity): boolean {
  return identifyProcess(identity.pid)?.startTicks === identity.startTicks
}

/** The file a process runs, if it may be known. */
export function programOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/exe`)
  } catch {
    // Gone, or of another user.
    return undefined
  }
}
