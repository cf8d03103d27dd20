import { openSync, readSync, writeSync } from 'node:fs'

/** Processes with this score are killed first when memory runs out. */
const HIGHEST_SCORE = '1000'

/** Runs an action that starts a process; the process gets the highest OOM score. */
export type WithOomScore = <T>(action: () => T) => T

export const INHERIT_OOM_SCORE: WithOomScore = (action) => action()

/**
 * Makes the kernel kill processes that an action starts before this one: they inherit the score that this one has meanwhile.
 * The file is opened once, because a non-dumpable process may not open it again. Without it, scores are unchanged.
 */
export function openOomScore(file = '/proc/self/oom_score_adj'): WithOomScore {
  try {
    const fd = openSync(file, 'r+')
    const bytes = Buffer.alloc(16)
    const own = bytes.toString('latin1', 0, readSync(fd, bytes, 0, bytes.length, 0)).trim()
    return (action) => {
      writeSync(fd, HIGHEST_SCORE, 0)
      try {
        return action()
      } finally {
        writeSync(fd, own, 0)
      }
    }
  } catch {
    // Not Linux, or forbidden.
    return INHERIT_OOM_SCORE
  }
}
