import { readFileSync, statfsSync } from 'node:fs'
import { descendantsOf, listProcesses } from '../isolation/process-table.ts'
import { VITAL_PIDS, type Watch } from '../isolation/watchdog.ts'
import { planAmounts } from './disk-plan.ts'

const POLL_MS = 1_000
/** Less may be a log line. */
const WRITING_BYTES = 1024 ** 2

/** Bytes that processes have written to disks since they started, by pid. */
type Written = ReadonlyMap<number, number>

function readWritten(rootPid: number, nowMs: number): Written {
  const table = descendantsOf(rootPid, listProcesses()).filter(({ innerPid }) => !VITAL_PIDS.has(innerPid))
  return new Map(table.map(({ pid }) => [pid, readWrittenBy(pid, nowMs)]))
}

/** A process that hides what it writes (`PR_SET_DUMPABLE`) counts as one that writes all the time. */
function readWrittenBy(pid: number, nowMs: number): number {
  try {
    return Number(/^write_bytes: ([0-9]+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1] ?? 0)
  } catch (error) {
    const isHidden = error instanceof Error && 'code' in error && error.code === 'EACCES'
    return isHidden ? nowMs * WRITING_BYTES : 0
  }
}

/** Bytes written between two polls by processes that still run. */
export function writtenBetween(before: Written, after: Written): number {
  return [...after].reduce((sum, [pid, bytes]) => sum + bytes - Math.min(bytes, before.get(pid) ?? 0), 0)
}

/**
 * Stops a sandbox without a disk image that goes on writing when the data disk is full. Its writes fail, but it would take the
 * space that the host then releases for control.
 */
export function watchFullDisk(
  { rootPid, folder }: { readonly rootPid: number; readonly folder: string },
  endSandbox: () => void,
): Watch {
  let before: Written | undefined
  return {
    intervalMs: POLL_MS,
    check: () => {
      const { blocks, bavail, bsize } = statfsSync(folder)
      const isFull = bavail * bsize < planAmounts(blocks * bsize).headroomBytes / 2
      const after = isFull || before !== undefined ? readWritten(rootPid, performance.now()) : undefined
      if (before !== undefined && after !== undefined && writtenBetween(before, after) > WRITING_BYTES)
        endSandbox()
      before = isFull ? after : undefined
      return undefined
    },
  }
}
