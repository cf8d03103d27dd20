import { type Family, findFamily, isAlive, type ProcessEntry, signalProcess } from './process-tree.ts'
import { signalNumber } from './signals.ts'

export interface KillLadderLimits {
  /** From HUP to TERM. */
  readonly hangupMs: number
  /** From TERM to KILL. */
  readonly terminateMs: number
}

/** How often known processes are looked at while they may still leave by themselves. */
const POLL_MS = 15
/** A process that outlives KILL by this is in the kernel's or another user's hands; nothing more can be done. */
const GIVE_UP_MS = 5_000

type Rung = { readonly signal: 'SIGHUP' | 'SIGTERM' | 'SIGKILL'; readonly waitMs: number }

/** Ends a whole family: HUP, then TERM, then KILL. Resolves when none is left; at once when there is none. */
export async function climbKillLadder(family: Family, limits: KillLadderLimits): Promise<void> {
  const rungs: readonly Rung[] = [
    { signal: 'SIGHUP', waitMs: limits.hangupMs },
    { signal: 'SIGTERM', waitMs: limits.terminateMs },
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
  while (true) {
    const members = findFamily(family)
    if (members.length === 0) return true
    for (const member of members) signalOnce(member, rung.signal, signalled)
    if (!(await anyLeaves(members, deadlineMs))) return false
  }
}

function signalOnce(member: ProcessEntry, signal: Rung['signal'], signalled: Set<string>): void {
  const identity = `${member.pid}:${member.startTicks}`
  if (signalled.has(identity)) return
  signalled.add(identity)
  signalProcess(member, signalNumber(signal))
  // A stopped process keeps every signal but KILL pending until it continues.
  signalProcess(member, signalNumber('SIGCONT'))
}

/** Waits until a member has gone, so the table is read again only when it has changed; false at the deadline. */
async function anyLeaves(members: readonly ProcessEntry[], deadlineMs: number): Promise<boolean> {
  while (members.every(isAlive)) {
    if (performance.now() >= deadlineMs) return false
    await Bun.sleep(POLL_MS)
  }
  return true
}
