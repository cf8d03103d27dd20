import { readdirSync, readFileSync } from 'node:fs'
import { closeFd, openPidFd, signalPidFd } from '../linux/libc.ts'
import { readTag } from './process-tag.ts'

/** Environment variable with the session id, which identifies processes that left the session's group. */
export const MARKER_VARIABLE = 'SANDWIRE_SESSION'
const MARKER_PREFIX = `${MARKER_VARIABLE}=`

/** `kthreadd`, the parent of all kernel threads where they can be seen. */
const KERNEL_THREADS_PID = 2

/** Errors of files in `/proc/<pid>`: the process has exited since it was listed, or belongs to another user. */
const UNREADABLE: readonly unknown[] = ['ENOENT', 'ESRCH', 'EACCES', 'EPERM']

/** One row of the process table. `startTicks` distinguishes a process from a later one with the same pid. */
export interface ProcessEntry {
  readonly pid: number
  /** The first 15 bytes of the program's file name. */
  readonly name: string
  readonly parentPid: number
  readonly groupId: number
  readonly sessionId: number
  readonly startTicks: string
  /** True for a zombie: it holds nothing and can receive nothing. */
  readonly isDead: boolean
}

/** A row with what identifies the session of the process. */
export interface MarkedEntry extends ProcessEntry {
  /** Undefined when the process has none. */
  readonly tag: string | undefined
  /** Values of the marker variable; undefined during execve, when the environment is empty for a moment. */
  readonly markers: readonly string[] | undefined
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
    name: text.slice(open + 2, close),
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

/** True while this process lives; false for another with the same pid. */
export function isAlive(entry: ProcessEntry): boolean {
  const current = readProcess(entry.pid)
  return current !== undefined && !current.isDead && current.startTicks === entry.startTicks
}

/** Signals this process, and no later one with the same pid. */
export function signalProcess(entry: ProcessEntry, ...signals: readonly number[]): void {
  const pidFd = openPidFd(entry.pid)
  if (pidFd < 0) return
  try {
    if (isAlive(entry)) for (const signal of signals) signalPidFd(pidFd, signal)
  } finally {
    closeFd(pidFd)
  }
}

/** Pids of all processes. */
export function listPids(): number[] {
  return readdirSync('/proc').map(Number).filter(Number.isInteger)
}

/** Reads one process with its marks, or undefined when there is none. Throws when it cannot be read, as without descriptors. */
export function readMarked(pid: number): MarkedEntry | undefined {
  const entry = readProcess(pid)
  if (entry === undefined) return undefined
  if (entry.isDead) return { ...entry, tag: undefined, markers: [] }
  const limits = readProc(pid, 'limits')
  return {
    ...entry,
    tag: limits === undefined ? undefined : readTag(limits),
    markers: readMarkers(entry),
  }
}

/** During execve environment and arguments are empty for a moment; kernel threads never have any. */
function readMarkers(entry: ProcessEntry): readonly string[] | undefined {
  const environment = readProc(entry.pid, 'environ')
  if (environment === undefined) return []
  if (environment !== '') return environment.includes(MARKER_PREFIX) ? findMarkers(environment) : []
  const isKernelThread = entry.pid === KERNEL_THREADS_PID || entry.parentPid === KERNEL_THREADS_PID
  return isKernelThread || readProc(entry.pid, 'cmdline') !== '' ? [] : undefined
}

function findMarkers(environment: string): readonly string[] {
  return environment
    .split('\0')
    .filter((variable) => variable.startsWith(MARKER_PREFIX))
    .map((variable) => variable.slice(MARKER_PREFIX.length))
}

function readProc(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1')
  } catch (error) {
    if (error instanceof Error && 'code' in error && UNREADABLE.includes(error.code)) return undefined
    throw error
  }
}
