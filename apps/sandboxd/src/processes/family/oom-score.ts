import { openSync, readSync, writeSync } from 'node:fs'

/** Whatever has it is ended before everything else when memory runs out. */
const FIRST_TO_END = '1000'

/** Runs an action that starts a process, which gets a score of its own. */
export type AsVictim = <T>(action: () => T) => T

export const NO_VICTIM: AsVictim = (action) => action()

/**
 * Lets processes that an action starts be ended before this one when memory runs out: they inherit the score that this one has
 * meanwhile. The file is opened once, because a process that forbids dumps may not open it again. Where there is none, scores stay.
 */
export function openVictimScore(file = '/proc/self/oom_score_adj'): AsVictim {
  try {
    const fd = openSync(file, 'r+')
    const bytes = Buffer.alloc(16)
    const own = bytes.toString('latin1', 0, readSync(fd, bytes, 0, bytes.length, 0)).trim()
    return (action) => {
      writeSync(fd, FIRST_TO_END, 0)
      try {
        return action()
      } finally {
        writeSync(fd, own, 0)
      }
    }
  } catch {
    // Not Linux, or forbidden.
    return NO_VICTIM
  }
}
