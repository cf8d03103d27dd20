import { readdirSync, readFileSync } from 'node:fs'
import { closeFd, openPidFd, signalPidFd } from '../linux/libc.ts'
import { hasTag, tagOf } from './process-tag.ts'

/** Environment variable with the session id, which identifies processes that left the session's group. */
export const MARKER_VARIABLE = 'SANDWIRE_SESSION'

/** `kthreadd`, the parent of all kernel threads where they can be seen. */
const KERNEL_THREADS_PID = 2

/** One row of the process table. `startTicks` distinguishes a process from a later one with the same pid. */
export interface ProcessEntry {
  readonly pid: number
  readonly parentPid: number
  readonly groupId: number
  readonly sessionId: number
  readonly startTicks: string
  /** True for a zombie: it holds nothing and can receive nothing. */
  readonly isDead: boolean
}

/** Identifies the processes of one session. */
export interface ProcessTree {
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

/** Whether a process has the tree's tag or marker; `unknown` during execve. */
export type Mark = 'marked' | 'unmarked' | 'unknown'

export interface ProcessTreeView {
  readonly members: readonly ProcessEntry[]
  /** False when a process could not be identified; a later call can. */
  readonly isCertain: boolean
}

/** Every living process of the tree: by group, session, tag or marker, and descendants of these. */
export function findProcessTree(tree: ProcessTree): ProcessTreeView {
  const tag = tagOf(tree.marker)
  return selectProcessTree(tree, readAll(), (entry) =>
    hasTag(entry.pid, tag) ? 'marked' : readMark(entry, tree.marker),
  )
}

/** The selection of `findProcessTree`, without I/O. */
export function selectProcessTree(
  tree: ProcessTree,
  table: readonly ProcessEntry[],
  markOf: (entry: ProcessEntry) => Mark,
): ProcessTreeView {
  const leader = table.find((entry) => entry.pid === tree.leaderPid)
  // The kernel reuses the leader's pid only when no process of its group or session is left.
  const isOurPid = leader === undefined || leader.startTicks === tree.leaderStartTicks
  const members = new Set<number>()
  let isCertain = true
  for (const entry of table) {
    if (entry.pid === process.pid) continue
    const mark = markOf(entry)
    if ((isOurPid && hasLeaderId(entry, tree)) || mark === 'marked') members.add(entry.pid)
    else if (mark === 'unknown') isCertain = false
  }
  addDescendants(members, table)
  return { members: table.filter((entry) => members.has(entry.pid) && !entry.isDead), isCertain }
}

function hasLeaderId(entry: ProcessEntry, { leaderPid }: ProcessTree): boolean {
  return entry.pid === leaderPid || entry.groupId === leaderPid || entry.sessionId === leaderPid
}

/** True while this process lives; false for another with the same pid. */
export function isAlive(entry: ProcessEntry): boolean {
  const current = readProcess(entry.pid)
  return current !== undefined && !current.isDead && current.startTicks === entry.startTicks
}

/** Signals this process, and no later one with the same pid. */
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

/** During execve environment and arguments are empty for a moment; kernel threads never have any. */
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
    // Exited between listing and reading, or of another user.
    return undefined
  }
}
