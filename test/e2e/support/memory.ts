import { readFileSync } from 'node:fs'

/** Memory page size. */
const PAGE_BYTES = 4096

/** Resident bytes of a process; readable by every user, even when the process is not dumpable. */
export function readResidentBytes(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]) * PAGE_BYTES
}

/** Samples of resident memory. */
export interface MemoryTrace {
  readonly first: number
  readonly highest: number
  /** Growth within the second half of the samples: a leak continues, a buffer fills once. */
  readonly lateGrowth: number
}

/** Samples a process's memory. */
export async function traceMemory(pid: number, forMs: number): Promise<MemoryTrace> {
  const samples: number[] = []
  const endMs = performance.now() + forMs
  while (performance.now() < endMs) {
    samples.push(readResidentBytes(pid))
    await Bun.sleep(50)
  }
  const late = samples.slice(samples.length >> 1)
  return {
    first: samples[0] ?? 0,
    highest: Math.max(...samples),
    lateGrowth: Math.max(...late) - (late[0] ?? 0),
  }
}

/** Peak resident memory of a process. */
export function readPeakBytes(pid: number): number {
  const kib = /^VmHWM:\s+([0-9]+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
  return Number(kib) * 1024
}
