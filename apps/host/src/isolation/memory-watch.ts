import { readFileSync } from 'node:fs'
import { descendantsOf, listProcesses, signalProcess, type ProcessEntry } from './process-table.ts'
import type { Watch } from './watchdog.ts'

/** Between two looks a sandbox can take what it can write in this time; more often costs processor all the time. */
const EVERY_MS = 500
/** Pids inside of what keeps the sandbox going: its init and sandboxd. */
const VITAL_PIDS = new Set([1, 2])

/** What one look found. */
export interface MemoryUse {
  readonly pid: number
  readonly innerPid: number
  readonly bytes: number
}

/** What to do about it: nothing, end one process, or end the sandbox, when what it needs to live is too much. */
export type MemoryVerdict =
  | { readonly kind: 'fine' }
  | { readonly kind: 'kill'; readonly pid: number }
  | { readonly kind: 'end' }

/** Ends the largest process of the user first, as the kernel does. */
export function judgeMemory(uses: readonly MemoryUse[], limitBytes: number): MemoryVerdict {
  const total = uses.reduce((sum, { bytes }) => sum + bytes, 0)
  if (total <= limitBytes) return { kind: 'fine' }
  const mortal = uses.filter(({ innerPid }) => !VITAL_PIDS.has(innerPid))
  const largest = mortal.reduce<MemoryUse | undefined>(
    (most, use) => (most === undefined || use.bytes > most.bytes ? use : most),
    undefined,
  )
  return largest === undefined ? { kind: 'end' } : { kind: 'kill', pid: largest.pid }
}

/** Memory of a process with its share of what several use; without that right, all that it uses. */
function measure(entry: ProcessEntry): MemoryUse {
  return {
    pid: entry.pid,
    innerPid: entry.innerPid,
    bytes: proportionalBytes(entry.pid) ?? entry.residentBytes,
  }
}

function proportionalBytes(pid: number): number | undefined {
  try {
    const kibibytes = /^Pss:\s+([0-9]+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]
    return kibibytes === undefined ? undefined : Number(kibibytes) * 1024
  } catch {
    // It hides its memory, or it ended.
    return undefined
  }
}

/** Keeps the processes below `rootPid` within a limit, where the kernel does not. */
export function watchMemory(rootPid: number, limitBytes: number, endSandbox: () => void): Watch {
  return {
    everyMs: EVERY_MS,
    look: () => {
      const entries = descendantsOf(rootPid, listProcesses())
      const resident = entries.reduce((sum, { residentBytes }) => sum + residentBytes, 0)
      // The exact figure costs more, and is never above this one.
      if (resident <= limitBytes) return
      const verdict = judgeMemory(entries.map(measure), limitBytes)
      if (verdict.kind === 'kill') signalProcess(verdict.pid, 'SIGKILL')
      if (verdict.kind === 'end') endSandbox()
    },
  }
}
