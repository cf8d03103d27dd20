import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { getLimit, setLimit } from '../linux/process-calls.ts'

/**
 * How long a realtime process may compute without a pause, in microseconds. Processes with ordinary scheduling never
 * meet it, it is inherited by whatever they start, and anybody can read it: so its soft value, decades long and
 * different for each session, tells whose a process is even after it left its group, its parent and its environment.
 */
const RLIMIT_RTTIME = 15
/** Its line in `/proc/<pid>/limits`. */
const LIMIT_LINE = /^Max realtime timeout +(\d+) /m

/** The value that stands for a session: from 2^51 to 2^52, which no one else sets. */
export function tagOf(marker: string): bigint {
  const hash = createHash('sha256').update(marker).digest().readBigUInt64BE()
  return (1n << 51n) + (hash >> 13n)
}

/** Runs an action that starts a process, which gets the tag. Where the system allows no such value it gets none. */
export function withTag<T>(tag: bigint, action: () => T): T {
  const before = getLimit(RLIMIT_RTTIME)
  if (before === undefined || before.hard < tag) return action()
  setLimit(RLIMIT_RTTIME, { soft: tag, hard: before.hard })
  try {
    return action()
  } finally {
    setLimit(RLIMIT_RTTIME, before)
  }
}

/** Whether a process has the tag; false when there is no such process. */
export function hasTag(pid: number, tag: bigint): boolean {
  try {
    return LIMIT_LINE.exec(readFileSync(`/proc/${pid}/limits`, 'latin1'))?.[1] === String(tag)
  } catch {
    // Gone between listing and reading.
    return false
  }
}
