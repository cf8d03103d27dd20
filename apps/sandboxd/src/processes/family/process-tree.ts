import { readdirSync, readFileSync } from 'node:fs'
import { closeFd, openPidFd, signalPidFd } from '../linux/libc.ts'
import { hasTag, tagOf } from './session-tag.ts'

/** Names the processes of one session in their environment, so that they are found after they left its group. */
export const MARKER_VARIABLE = 'SANDWIRE_SESSION'

/** `kthreadd`, the parent of all kernel threads where they can be seen. */
const KERNEL_THREADS_PID = 2

/** One line of the process table. `startTicks` tells a process from a later one with the same pid. */
export interface ProcessEntry {
  readonly pid: number
  readonly parentPid: number
  readonly groupId: number
  readonly sessionId: number
  readonly startTicks: string
  /** True for a zombie: it holds nothing and can receive nothing. */
  readonly isDead: boolean
}

/** What makes a process one of ours. */
export interface Family {
  readonly leaderPid: number
  readonly leaderStartTicks: string
  readonly marker: string
}

/** Parses `/proc/<pid>/stat`. The command name may hold spaces and parentheses, so fields count from the last `)`. */
export function parseStat(text: string): ProcessEntry | undefined {
  const open = text.indexOf(' (')
  const close = text.lastIndexOf(') ')
  if (open < 0 || close < open) return undefined
  const fields = text.slice(close + 2).split(' ')
  const [state, parentPid, groupId, sessionId] = fields
  const startTicks = fields[19]
  if (state === undefined || sessionId === undefined || startTicks === undefined) return undefined
  return {
    pid: Number(text.slice(0, open)),
    parentPid: Number(parentPid),
    groupId: Number(groupId),
    sessionId: Number(sessionId),
    startTicks,
    isDead: state === 'Z' || state === 'X',
  }
}

/** Reads one process, or undefined when there is none. */
export function readProcess(pid: number): ProcessEntry | undefined {
  const text = readProc(pid, 'stat')
  return text === undefined ? undefined : parseStat(text)
}

/** Whether a process carries a family's tag, or its marker; `unknown` while it is being replaced by another program. */
export type Mark = 'marked' | 'unmarked' | 'unknown'

export interface FamilyView {
  readonly members: readonly ProcessEntry[]
  /** False when a process could not be told to be one of ours or not; looking again settles it. */
  readonly isCertain: boolean
}

/** Every living process of the family: by group, session, marker, and as a descendant of one that is. */
export function findFamily(family: Family): FamilyView {
  const tag = tagOf(family.marker)
  return selectFamily(family, readAll(), (entry) =>
    hasTag(entry.pid, tag) ? 'marked' : readMark(entry, family.marker),
  )
}

/** The rule behind `findFamily`, without the file system. */
export function selectFamily(
  family: Family,
  table: readonly ProcessEntry[],
  markOf: (entry: ProcessEntry) => Mark,
): FamilyView {
  const leader = table.find((entry) => entry.pid === family.leaderPid)
  // A different process under the leader's pid means the kernel gave the number away, which it only does
  // when no process of the old group or session is left.
  const isOurNumber = leader === undefined || leader.startTicks === family.leaderStartTicks
  const members = new Set<number>()
  let isCertain = true
  for (const entry of table) {
    if (entry.pid === process.pid) continue
    const mark = markOf(entry)
    if ((isOurNumber && isNumbered(entry, family)) || mark === 'marked') members.add(entry.pid)
    else if (mark === 'unknown') isCertain = false
  }
  addDescendants(members, table)
  return { members: table.filter((entry) => members.has(entry.pid) && !entry.isDead), isCertain }
}

function isNumbered(entry: ProcessEntry, { leaderPid }: Family): boolean {
  return entry.pid === leaderPid || entry.groupId === leaderPid || entry.sessionId === leaderPid
}

/** True while this very process lives. */
export function isAlive(entry: ProcessEntry): boolean {
  const current = readProcess(entry.pid)
  return current !== undefined && !current.isDead && current.startTicks === entry.startTicks
}

/** Signals this very process; a pid that was used again in between is left alone. */
export function signalProcess(entry: ProcessEntry, signal: number): void {
  const pidFd = openPidFd(entry.pid)
  if (pidFd < 0) return
  try {
    if (isAlive(entry)) signalPidFd(pidFd, signal)
  } finally {
    closeFd(pidFd)
  }
}

function addDescendants(members: Set<number>, table: readonly ProcessEntry[]): void {
  let before: number
  do {
    before = members.size
    for (const entry of table) {
      if (members.has(entry.parentPid) && entry.pid !== process.pid) members.add(entry.pid)
    }
  } while (members.size > before)
}

function readAll(): ProcessEntry[] {
  const entries: ProcessEntry[] = []
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    const entry = Number.isInteger(pid) ? readProcess(pid) : undefined
    if (entry !== undefined) entries.push(entry)
  }
  return entries
}

/** During execve the kernel shows neither environment nor arguments for a moment; kernel threads never have any. */
function readMark(entry: ProcessEntry, marker: string): Mark {
  const environment = readProc(entry.pid, 'environ')
  if (environment === undefined) return 'unmarked'
  if (environment !== '') {
    return environment.split('\0').includes(`${MARKER_VARIABLE}=${marker}`) ? 'marked' : 'unmarked'
  }
  const isKernelThread = entry.pid === KERNEL_THREADS_PID || entry.parentPid === KERNEL_THREADS_PID
  return entry.isDead || isKernelThread || readProc(entry.pid, 'cmdline') !== '' ? 'unmarked' : 'unknown'
}

function readProc(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1')
  } catch {
    // Gone between listing and reading, or another user's: not ours to count.
    return undefined
  }
}
