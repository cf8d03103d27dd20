import { readFileSync } from 'node:fs'

/**
 * The kernel prefers sandboxes to other programs when the whole machine runs out of memory. This is for sandboxd and bubblewrap;
 * sandboxd gives what it starts the highest score there is, so that a sandbox that is full loses processes and lives on.
 */
const RAISED = 200

const CAP_SYS_RESOURCE = 1n << 24n

/**
 * The score for sandboxd; undefined: the one it inherits. A score that is set with `CAP_SYS_RESOURCE` is also the lowest that what
 * inherits it may choose. Set without, processes could go below sandboxd, and it would be ended before them.
 */
export function judgeScore(status: string, uidMap: string): number | undefined {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'
  const isInitial = /^\s*0\s+0\s+4294967295\s*$/.test(uidMap)
  return isInitial && (BigInt(`0x${effective}`) & CAP_SYS_RESOURCE) !== 0n ? RAISED : undefined
}

/** What `judgeScore` says of this process. */
export function findScore(): number | undefined {
  try {
    return judgeScore(readFileSync('/proc/self/status', 'utf8'), readFileSync('/proc/self/uid_map', 'utf8'))
  } catch {
    // A kernel without user namespaces has no map; then the score stays, which is never wrong.
    return undefined
  }
}
