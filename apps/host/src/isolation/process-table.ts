import { readdirSync, readFileSync } from 'node:fs'

/** A process from `/proc`; readable by every user. */
export interface ProcessEntry {
  readonly pid: number
  readonly parent: number
  readonly uid: number
  /** Pid in its innermost namespace. */
  readonly innerPid: number
  /** Memory, in RAM and swapped out. */
  readonly residentBytes: number
  readonly pageTableBytes: number
  /** Size of its descriptor table. */
  readonly descriptors: number
  readonly isZombie: boolean
}

function numberAfter(text: string, label: string): number {
  const start = text.indexOf(`\n${label}:`)
  return start < 0 ? 0 : Number.parseInt(text.slice(start + label.length + 2), 10)
}

/** Parses `/proc/PID/status`. */
export function parseStatus(text: string): ProcessEntry {
  const inner = /\nNSpid:\s*([0-9\t]+)/.exec(text)?.[1]?.trim().split(/\s+/).at(-1)
  return {
    pid: numberAfter(text, 'Pid'),
    parent: numberAfter(text, 'PPid'),
    uid: numberAfter(text, 'Uid'),
    innerPid: Number(inner ?? 0),
    residentBytes: (numberAfter(text, 'VmRSS') + numberAfter(text, 'VmSwap')) * 1024,
    pageTableBytes: numberAfter(text, 'VmPTE') * 1024,
    descriptors: numberAfter(text, 'FDSize'),
    isZombie: /\nState:\s*[ZX]/.test(text),
  }
}

/** One process; undefined when it does not exist. */
export function findProcess(pid: number): ProcessEntry | undefined {
  try {
    return parseStatus(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    // Ended.
    return undefined
  }
}

/** Number of open files. The size of the descriptor table does not shrink when files are closed. */
export function countOpenFiles(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length
  } catch {
    // Ended.
    return 0
  }
}

export function listProcesses(): ProcessEntry[] {
  return readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .map((name) => findProcess(Number(name)))
    .filter((entry) => entry !== undefined)
}

/** All descendants of a process. */
export function descendantsOf(root: number, table: readonly ProcessEntry[]): ProcessEntry[] {
  const children = Map.groupBy(table, (entry) => entry.parent)
  const found: ProcessEntry[] = []
  const open = [root]
  for (let pid = open.pop(); pid !== undefined; pid = open.pop())
    for (const child of children.get(pid) ?? []) {
      found.push(child)
      open.push(child.pid)
    }
  return found
}

/** Sends a signal; false when there is no such process. */
export function signalProcess(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal)
    return true
  } catch {
    // Already ended.
    return false
  }
}

/** Pids in the sandbox: bubblewrap's init, and sandboxd, its first child. */
const INIT = 1
const DAEMON = 2

/** Parses the init's pid from bubblewrap's info. */
export function parseInfo(text: string): number | undefined {
  const pid = /"child-pid":\s*([0-9]+)/.exec(text)?.[1]
  return pid === undefined ? undefined : Number(pid)
}

/** The sandbox's init, which ends last. */
export function findInit(infoFile: string): number | undefined {
  const pid = parseInfo(readInfo(infoFile))
  const entry = pid === undefined ? undefined : findProcess(pid)
  return entry?.innerPid === INIT && !entry.isZombie ? entry.pid : undefined
}

export function findDaemon(infoFile: string): number | undefined {
  const init = findInit(infoFile)
  if (init === undefined) return undefined
  return descendantsOf(init, listProcesses()).find(({ innerPid }) => innerPid === DAEMON)?.pid
}

function readInfo(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // Never started.
    return ''
  }
}
