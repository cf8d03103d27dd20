import { readFileSync } from 'node:fs'

/** Size of a page on every Linux this runs on. */
const PAGE_BYTES = 4096

/** Resident bytes of a process; readable for every user, also when the process forbids dumps. */
export function readResidentBytes(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]) * PAGE_BYTES
}

/** Resident bytes, looked at over a while. */
export interface MemoryTrace {
  readonly first: number
  readonly highest: number
  /** Growth within the second half of the trace: a leak goes on, a buffer fills once. */
  readonly lateGrowth: number
}

/** Looks at a process's memory for a while. */
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

/** The most that a process ever had. */
export function readPeakBytes(pid: number): number {
  const kib = /^VmHWM:\s+([0-9]+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
  return Number(kib) * 1024
}
