import { readdirSync, readFileSync } from 'node:fs'

/** Resources that a process holds; a test compares two of these to find a leak. */
export interface ProcessCounts {
  /** Open file descriptors. */
  readonly fds: number
  readonly threads: number
  /** Direct children, zombies included. */
  readonly children: number
  /** Direct children that ended and were not waited for. */
  readonly zombies: number
  /** All descendant processes, zombies included. */
  readonly descendants: number
}

export interface ProcessMemory {
  /** Resident bytes, shared pages counted in full. */
  readonly rssBytes: number
  /** Resident bytes, each shared page divided by the number of processes that map it, so values can be added up. */
  readonly pssBytes: number
  /** Resident bytes of no file: those of other processes do not change it. */
  readonly anonymousBytes: number
}

/** One line of the process table. */
export interface ProcessEntry {
  readonly pid: number
  readonly parentPid: number
  /** The letter of proc(5): `R`, `S`, `Z`, `T` and so on. */
  readonly state: string
  readonly name: string
}

function parseStat(text: string): ProcessEntry | undefined {
  // The name is in parentheses and may itself contain spaces and parentheses.
  const match = /^(\d+) \((.*)\) (\S) (\d+) /s.exec(text)
  if (match === null) return undefined
  const [, pid, name = '', state = '', parentPid] = match
  return { pid: Number(pid), name, state, parentPid: Number(parentPid) }
}

function readEntry(pid: string): ProcessEntry | undefined {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    // The process ended between the listing and the read, which is the same as not being listed.
    return undefined
  }
}

/** All processes visible to this one. */
export function readProcessTable(): ProcessEntry[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(readEntry)
    .filter((entry) => entry !== undefined)
}

/** True when the process runs; false for a zombie. */
export function isAlive(pid: number): boolean {
  const entry = readEntry(String(pid))
  return entry !== undefined && entry.state !== 'Z' && entry.state !== 'X'
}

/** The descendants of a process, parents before their children. */
export function readDescendants(
  pid: number,
  table: readonly ProcessEntry[] = readProcessTable(),
): ProcessEntry[] {
  const children = table.filter((entry) => entry.parentPid === pid)
  return children.flatMap((child) => [child, ...readDescendants(child.pid, table)])
}

/** Throws when the process does not exist or belongs to another user. */
export function readProcessCounts(pid: number): ProcessCounts {
  const descendants = readDescendants(pid)
  const children = descendants.filter((entry) => entry.parentPid === pid)
  return {
    fds: readdirSync(`/proc/${pid}/fd`).length,
    threads: readdirSync(`/proc/${pid}/task`).length,
    children: children.length,
    zombies: children.filter((entry) => entry.state === 'Z').length,
    descendants: descendants.length,
  }
}

function kibibytes(text: string, field: string): number {
  const match = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(text)
  if (match === null) throw new Error(`Cannot read memory: no field "${field}"`)
  return Number(match[1]) * 1024
}

/** Reads `smaps_rollup`, which walks the page tables: exact, about a millisecond for a Bun process. */
export function readProcessMemory(pid: number): ProcessMemory {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  return {
    rssBytes: kibibytes(text, 'Rss'),
    pssBytes: kibibytes(text, 'Pss'),
    anonymousBytes: kibibytes(text, 'Anonymous'),
  }
}
