import { readFileSync } from 'node:fs'

/** A mapping of shared memory without a file, in `/proc/PID/maps`: bounds, offset and inode. */
const MAPPING = /^([0-9a-f]+)-([0-9a-f]+) ..?.?s ([0-9a-f]+) \S+ (\d+) +\/dev\/zero \(deleted\)$/gm

/** Sizes of the shared memory that a process maps, by inode, from `/proc/PID/maps`. */
export function parseSharedMemory(maps: string): ReadonlyMap<string, number> {
  const sizes = new Map<string, number>()
  for (const [, start = '', end = '', offset = '', inode = ''] of maps.matchAll(MAPPING)) {
    const bytes = Number.parseInt(end, 16) - Number.parseInt(start, 16) + Number.parseInt(offset, 16)
    sizes.set(inode, Math.max(sizes.get(inode) ?? 0, bytes))
  }
  return sizes
}

/** Divides shared memory among the processes that map it. */
export function divideSharedMemory(
  mapped: ReadonlyMap<number, ReadonlyMap<string, number>>,
): ReadonlyMap<number, number> {
  const objects = new Map<string, { bytes: number; processes: number }>()
  for (const sizes of mapped.values())
    for (const [inode, size] of sizes) {
      const { bytes, processes } = objects.get(inode) ?? { bytes: 0, processes: 0 }
      objects.set(inode, { bytes: Math.max(bytes, size), processes: processes + 1 })
    }
  const shareOf = (inode: string): number => {
    const { bytes, processes } = objects.get(inode) ?? { bytes: 0, processes: 1 }
    return bytes / processes
  }
  return new Map(
    [...mapped].map(([pid, sizes]) => [
      pid,
      [...sizes.keys()].reduce((sum, inode) => sum + shareOf(inode), 0),
    ]),
  )
}

/**
 * Shared memory of each process by the size of its mappings, because pages stay when no process has them any more (`MADV_DONTNEED`).
 * Stops at the deadline.
 */
export function sharedMemoryOf(pids: readonly number[], deadlineMs: number): ReadonlyMap<number, number> {
  const mapped = new Map<number, ReadonlyMap<string, number>>()
  for (const pid of pids) {
    if (performance.now() >= deadlineMs) break
    try {
      mapped.set(pid, parseSharedMemory(readFileSync(`/proc/${pid}/maps`, 'utf8')))
    } catch {
      // Ended, or bubblewrap outside of the sandbox.
    }
  }
  return divideSharedMemory(mapped)
}
