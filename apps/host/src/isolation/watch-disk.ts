import { statfsSync, statSync } from 'node:fs'
import { inodesFor } from './disk-image.ts'
import { countKeptFiles, listOpenFiles, sumOnce } from './open-files.ts'
import { descendantsOf, listProcesses } from './process-table.ts'
import { maxFileBytes } from './resource-limits.ts'
import { ownSystemFolders, usrLinks } from './system-files.ts'
import { SYSTEM_ENV } from './system-tools.ts'
import { LookSchedule, type Watch } from './watchdog.ts'

/** Pause before the first look, and before repeating one. */
const DISK_POLL_MS = 1_000
/** Pause between looks at all files of a sandbox while its file system does not grow. */
const DISK_LOOK_MS = 2_000
/** A longer look counts as one that found too much. */
const LOOK_TIMEOUT_MS = 60_000
/** Names of one file: a few are normal, and each costs as much to find as a file. */
const NAMES_PER_INODE = 4

/** Counts what a look at the disk finds, line by line: inode, blocks of 512 bytes, number of names. */
export class DiskTally {
  /** Bytes on disk; a file with several names counts once. */
  bytes = 0
  inodes = 0
  /** Files and folders, by name. */
  names = 0
  readonly #linked = new Set<string>()
  #rest = ''

  add(text: string): void {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) {
      const [inode = '', blocks = '', links = ''] = line.split(' ')
      this.names += 1
      if (links !== '1' && this.#linked.has(inode)) continue
      if (links !== '1') this.#linked.add(inode)
      this.inodes += 1
      this.bytes += Number(blocks) * 512
    }
  }

  /** True when the limit is exceeded, whatever is found later. */
  isOver(limitBytes: number): boolean {
    const inodes = inodesFor(limitBytes)
    return this.bytes > limitBytes || this.inodes > inodes || this.names > inodes * NAMES_PER_INODE
  }
}

/**
 * Command prefix to read folders regardless of their modes: the owner of files can do so as root of a user namespace. Not
 * needed by root.
 */
function asReader(folders: readonly string[]): string[] {
  if (process.getuid?.() === 0) return []
  const visible = ['/usr', ...ownSystemFolders().map(({ from }) => from), ...folders]
  return [
    'bwrap',
    '--unshare-user',
    '--uid',
    '0',
    '--gid',
    '0',
    '--die-with-parent',
    '--cap-drop',
    'ALL',
    '--cap-add',
    'CAP_DAC_READ_SEARCH',
    ...visible.flatMap((folder) => ['--ro-bind', folder, folder]),
    ...usrLinks().flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]),
    '--',
  ]
}

interface DiskLook {
  readonly tally: DiskTally
  /** False when `find` gave up, as in a folder that was moved while it was there. */
  readonly isWhole: boolean
}

/**
 * Looks at the folders until it has seen everything or too much. `find` follows no links and stays on one file system, whatever the
 * sandbox changes meanwhile. Undefined when it took too long.
 */
export async function tallyFolders(
  folders: readonly string[],
  limitBytes: number,
): Promise<DiskLook | undefined> {
  const find = ['find', ...folders, '-xdev', '-ignore_readdir_race', '-printf', '%i %b %n\\n']
  const child = Bun.spawn([...asReader(folders), ...find], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
    env: SYSTEM_ENV,
    timeout: LOOK_TIMEOUT_MS,
    killSignal: 'SIGKILL',
  })
  const tally = new DiskTally()
  const decoder = new TextDecoder()
  for await (const chunk of child.stdout) {
    tally.add(decoder.decode(chunk))
    if (!tally.isOver(limitBytes)) continue
    child.kill('SIGKILL')
    return { tally, isWhole: true }
  }
  const code = await child.exited
  return child.signalCode === null ? { tally, isWhole: code === 0 } : undefined
}

/** Bytes of deleted files that processes have open. */
function namelessBytes(pids: readonly number[], folders: readonly string[]): number {
  const devices = new Set(folders.map((folder) => statSync(folder).dev))
  const open = pids.flatMap((pid) => listOpenFiles(pid))
  return sumOnce(open.filter(({ device, isNamed }) => !isNamed && devices.has(device)))
}

/** A sandbox without a disk image. */
export interface WatchedDisk {
  /** Root process of the sandbox. */
  readonly rootPid: number
  /** Folders that the sandbox can write to. */
  readonly folders: readonly string[]
  readonly limitBytes: number
}

/** Bytes in use on the file system of a folder, by everything. */
function usedBytesAt(folder: string): number {
  const { blocks, bfree, bsize } = statfsSync(folder)
  return (blocks - bfree) * bsize
}

/**
 * Consecutive looks after which a sandbox counts as over its limit, because they were not whole, or found too much in files that cannot
 * be measured: a folder may have been moved, and a message with a descriptor may be on its way.
 */
const MAX_UNMEASURED_LOOKS = 3

/**
 * Stops a sandbox that exceeds its disk limit, where it has no disk image. A look at all files is expensive, so it is repeated only
 * after a pause, or when the file system has grown by as much as the sandbox had left. Files that processes keep without a descriptor
 * cannot be measured: they count with what the file system has grown for no other visible reason, at most with the largest size of a file.
 */
export function watchDisk({ rootPid, folders, limitBytes }: WatchedDisk, endSandbox: () => void): Watch {
  const [first = '/'] = folders
  const schedule = new LookSchedule(DISK_LOOK_MS)
  let otherBytes: number | undefined
  let unmeasuredLooks = 0
  return {
    intervalMs: DISK_POLL_MS,
    check: async () => {
      const startedMs = performance.now()
      const usedBytes = usedBytesAt(first)
      if (unmeasuredLooks === 0 && !schedule.isDue(startedMs, usedBytes)) return schedule.pollMs()
      const look = await tallyFolders(folders, limitBytes)
      const pids = descendantsOf(rootPid, listProcesses()).map(({ pid }) => pid)
      const bytes = (look?.tally.bytes ?? 0) + namelessBytes(pids, folders)
      if (look?.isWhole === true) otherBytes ??= usedBytes - bytes
      const grownBytes = otherBytes === undefined ? 0 : usedBytes - bytes - otherBytes
      const mayHide = bytes + grownBytes > limitBytes
      const keptBytes = mayHide ? countKeptFiles(pids) * maxFileBytes({ diskBytes: limitBytes }) : 0
      const isMeasured = look?.isWhole === true && bytes + Math.min(grownBytes, keptBytes) <= limitBytes
      unmeasuredLooks = isMeasured ? 0 : unmeasuredLooks + 1
      const isOver = look === undefined || look.tally.isOver(limitBytes) || bytes > limitBytes
      if (isOver || unmeasuredLooks >= MAX_UNMEASURED_LOOKS) endSandbox()
      const endedMs = performance.now()
      schedule.looked({ startedMs, endedMs, machineBytes: usedBytes, leftBytes: limitBytes - bytes })
      return unmeasuredLooks > 0 ? DISK_POLL_MS : schedule.pollMs()
    },
  }
}
