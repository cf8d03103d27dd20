import { constants } from 'node:os'
import {
  type ProcessTree,
  findProcessTree,
  isAlive,
  type ProcessEntry,
  signalProcess,
} from './process-tree.ts'

export interface TerminationTimeouts {
  /** From SIGHUP to SIGTERM. */
  readonly hangupMs: number
  /** From SIGTERM to SIGKILL. */
  readonly terminateMs: number
}

/** How often known processes are checked while they may still exit. */
const POLL_MS = 15
/** One scan can miss a process when pids wrap around during it. */
const EMPTY_SCANS = 2
/** A process that survives SIGKILL for this long is blocked in the kernel or belongs to another user. */
const GIVE_UP_MS = 5_000

type Step = { readonly signal: 'SIGHUP' | 'SIGTERM' | 'SIGKILL'; readonly waitMs: number }

/** Ends a process tree with SIGHUP, SIGTERM and SIGKILL in turn. Resolves when no process of it is left. */
export async function terminateTree(tree: ProcessTree, timeouts: TerminationTimeouts): Promise<void> {
  const steps: readonly Step[] = [
    { signal: 'SIGHUP', waitMs: timeouts.hangupMs },
    { signal: 'SIGTERM', waitMs: timeouts.terminateMs },
    { signal: 'SIGKILL', waitMs: GIVE_UP_MS },
  ]
  for (const step of steps) {
    if (await signalUntilGone(step, tree)) return
  }
}

/** Signals every process once, including those that appear meanwhile; true when none is left. */
async function signalUntilGone(step: Step, tree: ProcessTree): Promise<boolean> {
  const deadlineMs = performance.now() + step.waitMs
  const signalled = new Set<string>()
  let emptyScans = 0
  while (emptyScans < EMPTY_SCANS) {
    const { members, isCertain } = findProcessTree(tree)
    emptyScans = members.length === 0 && isCertain ? emptyScans + 1 : 0
    for (const member of members) signalOnce(member, step.signal, signalled)
    if (emptyScans === 0 && !(await mayHaveChanged(members, deadlineMs))) return false
  }
  return true
}

function signalOnce(member: ProcessEntry, signal: Step['signal'], signalled: Set<string>): void {
  const identity = `${member.pid}:${member.startTicks}`
  if (signalled.has(identity)) return
  signalled.add(identity)
  signalProcess(member, constants.signals[signal])
  // A stopped process handles no signal but SIGKILL until it is continued.
  signalProcess(member, constants.signals.SIGCONT)
}

/** Waits until a member has exited, so that the table is scanned only after changes; false at the deadline. */
async function mayHaveChanged(members: readonly ProcessEntry[], deadlineMs: number): Promise<boolean> {
  do {
    if (performance.now() >= deadlineMs) return false
    await Bun.sleep(POLL_MS)
  } while (members.length > 0 && members.every(isAlive))
  return true
}
