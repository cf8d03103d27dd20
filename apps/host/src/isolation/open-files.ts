import { closeSync, fstatSync, readdirSync, readFileSync, type Stats, statSync } from 'node:fs'
import { openLibc } from '../libc.ts'

/** A file that a process holds open. */
export interface OpenFile {
  /** Equal for the same file in different processes. */
  readonly key: string
  readonly device: number
  /** Size on disk. */
  readonly bytes: number
  /** False for a deleted file. */
  readonly isNamed: boolean
}

const BLOCK_BYTES = 512
/** The same on all architectures. */
const PIDFD_OPEN = 434n
const PIDFD_GETFD = 438n

function describe({ dev, ino, blocks, nlink }: Stats): OpenFile {
  return { key: `${dev}:${ino}`, device: dev, bytes: blocks * BLOCK_BYTES, isNamed: nlink > 0 }
}

/** Describes what can be described; descriptors may be closed meanwhile. */
function describeAll(names: readonly string[], stat: (name: string) => Stats): OpenFile[] {
  return names.flatMap((name) => {
    try {
      return [describe(stat(name))]
    } catch {
      // Closed meanwhile.
      return []
    }
  })
}

/**
 * Open files of a process whose descriptors only root may list: a non-dumpable one. The user who created its user namespace may
 * list them in `fdinfo` (Linux 5.14) and copy them.
 */
function listHidden(pid: number): OpenFile[] {
  const names = readdirSync(`/proc/${pid}/fdinfo`)
  const { syscall } = openLibc({ syscall: { args: ['i64', 'i64', 'i64', 'i64'], returns: 'i64' } })
  const processFd = Number(syscall(PIDFD_OPEN, BigInt(pid), 0n, 0n))
  if (processFd < 0) return []
  try {
    return describeAll(names, (name) => {
      const fd = Number(syscall(PIDFD_GETFD, BigInt(processFd), BigInt(name), 0n))
      try {
        return fstatSync(fd)
      } finally {
        if (fd >= 0) closeSync(fd)
      }
    })
  } finally {
    closeSync(processFd)
  }
}

/** Open files of a process; empty for one that has ended. */
export function listOpenFiles(pid: number): OpenFile[] {
  const folder = `/proc/${pid}/fd`
  try {
    return describeAll(readdirSync(folder), (name) => statSync(`${folder}/${name}`))
  } catch {
    // Non-dumpable, or ended.
  }
  try {
    return listHidden(pid)
  } catch {
    // Ended.
    return []
  }
}

/** Mappings of deleted files on a disk, in `/proc/PID/maps`: device, inode, path. Shared memory has names of its own. */
const DELETED = /^\S+ \S+ \S+ (\S+ [1-9]\d*) +\/(?!memfd:|dev\/|SYSV).* \(deleted\)$/gm
const QUEUED = /^scm_fds:\s+(\d+)$/m

/** Number of files that processes keep without a descriptor: mapped and deleted, or in a message that no process has received. */
export function countKeptFiles(pids: readonly number[]): number {
  const mapped = new Set<string>()
  const queued = new Map<string, number>()
  for (const pid of pids) {
    const folder = `/proc/${pid}`
    try {
      for (const [, file = ''] of readFileSync(`${folder}/maps`, 'utf8').matchAll(DELETED)) mapped.add(file)
      for (const name of readdirSync(`${folder}/fdinfo`)) {
        const info = readFileSync(`${folder}/fdinfo/${name}`, 'utf8')
        const count = Number(QUEUED.exec(info)?.[1] ?? 0)
        if (count > 0) queued.set(/^ino:\s+(\d+)$/m.exec(info)?.[1] ?? `${pid}:${name}`, count)
      }
    } catch {
      // Ended.
    }
  }
  return [...queued.values()].reduce((sum, count) => sum + count, mapped.size)
}

/** Total size, counting each file once. */
export function sumOnce(files: readonly OpenFile[]): number {
  return [...new Map(files.map(({ key, bytes }) => [key, bytes])).values()].reduce(
    (sum, each) => sum + each,
    0,
  )
}
