import { constants } from 'node:os'
import { type Family, findFamily, isAlive, type ProcessEntry, signalProcess } from './process-tree.ts'

export interface TerminationTimeouts {
  /** From HUP to TERM. */
  readonly hangupMs: number
  /** From TERM to KILL. */
  readonly terminateMs: number
}

/** How often known processes are looked at while they may still leave by themselves. */
const POLL_MS = 15
/** One look can miss a process whose number wrapped round while the table was read. */
const EMPTY_LOOKS = 2
/** A process that outlives KILL by this is in the kernel's or another user's hands; nothing more can be done. */
const GIVE_UP_MS = 5_000

type Rung = { readonly signal: 'SIGHUP' | 'SIGTERM' | 'SIGKILL'; readonly waitMs: number }

/** Ends a whole family: HUP, then TERM, then KILL. Resolves when none is left; at once when there is none. */
export async function terminateFamily(family: Family, timeouts: TerminationTimeouts): Promise<void> {
  const rungs: readonly Rung[] = [
    { signal: 'SIGHUP', waitMs: timeouts.hangupMs },
    { signal: 'SIGTERM', waitMs: timeouts.terminateMs },
    { signal: 'SIGKILL', waitMs: GIVE_UP_MS },
  ]
  for (const rung of rungs) {
    if (await standOn(rung, family)) return
  }
}

/** Signals every member once, also those that appear meanwhile; true when none is left. */
async function standOn(rung: Rung, family: Family): Promise<boolean> {
  const deadlineMs = performance.now() + rung.waitMs
  const signalled = new Set<string>()
  let emptyLooks = 0
  while (emptyLooks < EMPTY_LOOKS) {
    const { members, isCertain } = findFamily(family)
    emptyLooks = members.length === 0 && isCertain ? emptyLooks + 1 : 0
    for (const member of members) signalOnce(member, rung.signal, signalled)
    if (emptyLooks === 0 && !(await mayHaveChanged(members, deadlineMs))) return false
  }
  return true
}

function signalOnce(member: ProcessEntry, signal: Rung['signal'], signalled: Set<string>): void {
  const identity = `${member.pid}:${member.startTicks}`
  if (signalled.has(identity)) return
  signalled.add(identity)
  signalProcess(member, constants.signals[signal])
  // A stopped process keeps every signal but KILL pending until it continues.
  signalProcess(member, constants.signals.SIGCONT)
}

/** Waits until a member has gone, so the table is read again only when it has changed; false at the deadline. */
async function mayHaveChanged(members: readonly ProcessEntry[], deadlineMs: number): Promise<boolean> {
  do {
    if (performance.now() >= deadlineMs) return false
    await Bun.sleep(POLL_MS)
  } while (members.length > 0 && members.every(isAlive))
  return true
}
