import { readFileSync, statfsSync } from 'node:fs'
import { listOpenFiles, sumOnce, type OpenFile } from './open-files.ts'
import { descendantsOf, listProcesses, signalProcess, type ProcessEntry } from './process-table.ts'
import type { Watch } from './watchdog.ts'

/** Between two looks a sandbox can take what it can write in this time; more often costs processor all the time. */
const EVERY_MS = 500
/** Memory file systems that processes of a sandbox can write. */
const MEMORY_FOLDERS = ['tmp', 'dev/shm']
/** Pid inside of the process that sees the sandbox's file systems for as long as it lives. */
const INIT = 1
/** Pids inside of what keeps the sandbox going: its init and sandboxd. */
const VITAL_PIDS = new Set([1, 2])

/** What one look found of a process. */
export interface MemoryUse {
  readonly pid: number
  readonly innerPid: number
  /** Its own, and its part of program files. */
  readonly bytes: number
  /** Its part of shared memory that it maps. */
  readonly sharedBytes: number
  /** Shared memory that it holds open, mapped or not. */
  readonly heldBytes: number
}

/** What to do about it: nothing, end one process, or end the sandbox, when what it needs to live is too much. */
export type MemoryVerdict =
  | { readonly kind: 'fine' }
  | { readonly kind: 'kill'; readonly pid: number }
  | { readonly kind: 'end' }

function sizeOf({ bytes, sharedBytes, heldBytes }: MemoryUse): number {
  return bytes + Math.max(sharedBytes, heldBytes)
}

/**
 * Ends the largest process of the user first, as the kernel does. `heldBytes` is the shared memory of the sandbox that is held open or
 * in files, each counted once. What of it is mapped cannot be told, so that the larger of both counts, and nobody is accused too much.
 */
export function judgeMemory(
  uses: readonly MemoryUse[],
  heldBytes: number,
  limitBytes: number,
): MemoryVerdict {
  const own = uses.reduce((sum, { bytes }) => sum + bytes, 0)
  const shared = uses.reduce((sum, { sharedBytes }) => sum + sharedBytes, 0)
  if (own + Math.max(shared, heldBytes) <= limitBytes) return { kind: 'fine' }
  const mortal = uses.filter(({ innerPid }) => !VITAL_PIDS.has(innerPid))
  const largest = mortal.reduce<MemoryUse | undefined>(
    (most, use) => (most === undefined || sizeOf(use) > sizeOf(most) ? use : most),
    undefined,
  )
  return largest === undefined ? { kind: 'end' } : { kind: 'kill', pid: largest.pid }
}

/** Memory of a process with its share of what several use; without that right, all that it uses. */
function measure(entry: ProcessEntry, held: readonly OpenFile[]): MemoryUse {
  const { pid, innerPid, residentBytes } = entry
  return {
    pid,
    innerPid,
    ...(proportionalBytes(pid) ?? { bytes: residentBytes, sharedBytes: 0 }),
    heldBytes: sumOnce(held),
  }
}

/** Reads the text of `/proc/PID/smaps_rollup`. */
export function parseRollup(text: string): Pick<MemoryUse, 'bytes' | 'sharedBytes'> | undefined {
  const read = (label: string): number | undefined => {
    const kibibytes = new RegExp(`^${label}:\\s+([0-9]+) kB$`, 'm').exec(text)?.[1]
    return kibibytes === undefined ? undefined : Number(kibibytes) * 1024
  }
  const all = read('Pss')
  const sharedBytes = read('Pss_Shmem') ?? 0
  return all === undefined ? undefined : { bytes: all - sharedBytes, sharedBytes }
}

function proportionalBytes(pid: number): Pick<MemoryUse, 'bytes' | 'sharedBytes'> | undefined {
  try {
    return parseRollup(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))
  } catch {
    // It hides its memory, or it ended.
    return undefined
  }
}

/** What is in the memory file systems that a process sees. */
function memoryFileBytes(pid: number | undefined): number {
  if (pid === undefined) return 0
  return MEMORY_FOLDERS.reduce((sum, folder) => {
    try {
      const { blocks, bfree, bsize } = statfsSync(`/proc/${pid}/root/${folder}`)
      return sum + (blocks - bfree) * bsize
    } catch {
      // It ended.
      return sum
    }
  }, 0)
}

/** Keeps the processes below `rootPid` within a limit, where the kernel does not. */
export function watchMemory(rootPid: number, limitBytes: number, endSandbox: () => void): Watch {
  return {
    everyMs: EVERY_MS,
    look: () => {
      const entries = descendantsOf(rootPid, listProcesses())
      const open = new Map(entries.map(({ pid }) => [pid, listOpenFiles(pid, 'memory')]))
      const inFiles = memoryFileBytes(entries.find(({ innerPid }) => innerPid === INIT)?.pid)
      const held = inFiles + sumOnce([...open.values()].flat())
      const resident = entries.reduce((sum, { residentBytes }) => sum + residentBytes, 0)
      // The exact figure costs more, and is never above this one.
      if (resident + held <= limitBytes) return
      const uses = entries.map((entry) => measure(entry, open.get(entry.pid) ?? []))
      const verdict = judgeMemory(uses, held, limitBytes)
      if (verdict.kind === 'kill') signalProcess(verdict.pid, 'SIGKILL')
      if (verdict.kind === 'end') endSandbox()
    },
  }
}
