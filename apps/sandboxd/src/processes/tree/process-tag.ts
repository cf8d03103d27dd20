import { createHash } from 'node:crypto'
import { getLimit, setLimit } from '../linux/process-calls.ts'

/**
 * Longest CPU time of a realtime process without blocking, in microseconds. It does not affect processes with ordinary
 * scheduling, children inherit it, and every process may read it. Its soft value, decades long and different for each session,
 * therefore identifies the session of a process that left its group, its parent and its environment.
 */
const RLIMIT_RTTIME = 15
/** Its line in `/proc/<pid>/limits`. */
const LIMIT_LINE = /^Max realtime timeout +(\d+) /m

/** The value that identifies a session: from 2^51 to 2^52, which no program sets by itself. */
export function tagOf(marker: string): bigint {
  const hash = createHash('sha256').update(marker).digest().readBigUInt64BE()
  return (1n << 51n) + (hash >> 13n)
}

/** Runs an action that starts a process; the process inherits the tag, unless the hard limit forbids it. */
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

/** The tag in the text of `/proc/<pid>/limits`; undefined where there is no such limit. */
export function readTag(limits: string): string | undefined {
  return LIMIT_LINE.exec(limits)?.[1]
}

/** True for a value that `tagOf` can return. */
export function isTag(value: string | undefined): boolean {
  return value !== undefined && BigInt(value) >> 51n === 1n
}
