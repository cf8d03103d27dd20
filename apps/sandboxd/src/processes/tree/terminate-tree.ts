import { constants } from 'node:os'
import type { ProcessScanner } from './process-scanner.ts'
import { type ProcessEntry, readProcess, signalProcess } from './process-table.ts'
import type { ProcessTree } from './process-tree.ts'

export interface TerminationTimeouts {
  /** From SIGHUP to SIGTERM. */
  readonly hangupMs: number
  /** From SIGTERM to SIGKILL. */
  readonly terminateMs: number
  /** From SIGKILL to giving up; 5 s by default. */
  readonly giveUpMs?: number
}

/** One scan can miss a process when pids wrap around during it. */
const EMPTY_SCANS = 2

/** A process that survives SIGKILL for this long is blocked in the kernel or belongs to another user. */
const GIVE_UP_MS = 5_000

type Step = { readonly signal: 'SIGHUP' | 'SIGTERM' | 'SIGKILL'; readonly waitMs: number }

/** Ends a process tree with SIGHUP, SIGTERM and SIGKILL in turn. Resolves when no process of it is left. */
export async function terminateTree(
  tree: ProcessTree,
  { hangupMs, terminateMs, giveUpMs = GIVE_UP_MS }: TerminationTimeouts,
  scanner: ProcessScanner,
): Promise<void> {
  const steps: readonly Step[] = [
    { signal: 'SIGHUP', waitMs: hangupMs },
    { signal: 'SIGTERM', waitMs: terminateMs },
    { signal: 'SIGKILL', waitMs: giveUpMs },
  ]
  for (const step of steps) {
    if (await signalUntilGone(step, tree, scanner)) return
  }
}

/** Signals every process once, including those that appear meanwhile; true when none is left. */
async function signalUntilGone(step: Step, tree: ProcessTree, scanner: ProcessScanner): Promise<boolean> {
  const deadlineMs = performance.now() + step.waitMs
  const signalled = new Set<string>()
  const leader = findLeader(tree)
  if (leader !== undefined) signalOnce(leader, step.signal, signalled)
  let emptyScans = 0
  while (emptyScans < EMPTY_SCANS) {
    const { members, isCertain } = await scanner.find(tree)
    emptyScans = members.length === 0 && isCertain ? emptyScans + 1 : 0
    for (const member of members) signalOnce(member, step.signal, signalled)
    if (emptyScans === 0 && !(await scanner.awaitChange(members, deadlineMs))) return false
  }
  return true
}

/** The leader needs no scan, so a session without other processes ends at once. */
function findLeader({ leaderPid, leaderStartTicks }: ProcessTree): ProcessEntry | undefined {
  try {
    const leader = readProcess(leaderPid)
    return leader?.startTicks === leaderStartTicks ? leader : undefined
  } catch {
    // It cannot be read now, for example without free descriptors; a scan finds it later.
    return undefined
  }
}

function signalOnce(member: ProcessEntry, signal: Step['signal'], signalled: Set<string>): void {
  const identity = `${member.pid}:${member.startTicks}`
  if (signalled.has(identity)) return
  signalled.add(identity)
  // A stopped process handles no signal but SIGKILL until it is continued.
  signalProcess(member, constants.signals[signal], constants.signals.SIGCONT)
}
