import { readFileSync, statfsSync, statSync } from 'node:fs'
import { inodesFor } from './disk-image.ts'
import { countKeptFiles, listOpenFiles, sumOnce } from './open-files.ts'
import {
  countOpenFiles,
  descendantsOf,
  findProcess,
  listProcesses,
  type ProcessEntry,
  signalProcess,
} from './process-table.ts'
import { maxFileBytes } from './resource-limits.ts'
import { countSockets, netlinkBytes, socketBytes } from './socket-memory.ts'
import { ownSystemFolders, usrLinks } from './system-files.ts'
import { SYSTEM_ENV } from './system-tools.ts'

/** A check that is repeated while a sandbox runs. */
export interface Watch {
  /** Pause before each check. */
  readonly intervalMs: number
  /** Measures once, and acts. True when it found the limit exceeded: it is then repeated without a pause. */
  readonly check: () => Promise<boolean> | boolean
}

/** Largest share of time spent checking, so that a large sandbox does not load the machine. */
const BUSY_SHARE = 0.05

/** Longest pause: a sandbox can exceed its limit by what it writes in this time. */
const MAX_PAUSE_MS = 10_000
/** Pause after a check that found the limit exceeded, so that killed processes can end. */
const EXCEEDED_PAUSE_MS = 50

/** Pause after a check that took `tookMs`. */
export function pauseAfter(tookMs: number, intervalMs: number): number {
  return Math.max(intervalMs, Math.min(MAX_PAUSE_MS, tookMs / BUSY_SHARE))
}

/** Repeats the checks until disposed. */
export function startWatches(watches: readonly Watch[]): Disposable {
  let isOver = false
  const timers = new Set<ReturnType<typeof setTimeout>>()
  const schedule = (watch: Watch, delayMs: number): void => {
    if (isOver) return
    const timer = setTimeout(() => {
      timers.delete(timer)
      void run(watch)
    }, delayMs)
    timer.unref()
    timers.add(timer)
  }
  const run = async (watch: Watch): Promise<void> => {
    const startedMs = performance.now()
    let isExceeded = false
    try {
      isExceeded = await watch.check()
    } catch {
      // The processes may be ending; the next check decides.
    }
    const tookMs = performance.now() - startedMs
    schedule(watch, isExceeded ? EXCEEDED_PAUSE_MS : pauseAfter(tookMs, watch.intervalMs))
  }
  for (const watch of watches) schedule(watch, watch.intervalMs)
  return {
    [Symbol.dispose]: () => {
      isOver = true
      for (const timer of timers) clearTimeout(timer)
    },
  }
}

/** A sandbox can exceed its limit by what it writes in this time; a shorter interval costs CPU. */
const MEMORY_POLL_MS = 500
/** tmpfs folders that a sandbox can write to. */
const MEMORY_FOLDERS = ['tmp', 'dev/shm']
/** Pid in the sandbox of its init, whose root is the sandbox's. */
const INIT = 1
/** Pids in the sandbox of init and sandboxd, which are not killed. */
export const VITAL_PIDS = new Set([1, 2])

/** Memory of one process. */
export interface MemoryUse {
  readonly pid: number
  readonly innerPid: number
  /** Private memory, also in swap, and its share of mapped files. */
  readonly bytes: number
  /** Its share of mapped shared memory. */
  readonly sharedBytes: number
  /** What it holds in the kernel: its page tables, and at most by its descriptors, as pipes do. */
  readonly heldBytes: number
  /** Open files; 0 if they are hidden or were not counted. */
  readonly openFiles: number
}

/** Memory that belongs to no process in particular. */
export interface CommonMemory {
  /** In files of tmpfs, mapped or not. */
  readonly fileBytes: number
  readonly socketBytes: number
}

/** What to do: nothing, kill processes, or stop the sandbox when init and sandboxd alone exceed the limit. */
export type MemoryAction =
  | { readonly kind: 'fine' }
  | { readonly kind: 'kill'; readonly pids: readonly number[] }
  | { readonly kind: 'end' }

/** What killing each process may free. The kernel does not tell which sockets have the queues, so they are divided by open files. */
function measureFreed(uses: readonly MemoryUse[], queuedBytes: number): Map<MemoryUse, number> {
  const allFiles = uses.reduce((sum, { openFiles }) => sum + openFiles, 0)
  return new Map(
    uses.map((use) => {
      const queued = allFiles === 0 ? 0 : (queuedBytes * use.openFiles) / allFiles
      return [use, use.bytes + use.sharedBytes + use.heldBytes + queued]
    }),
  )
}

/**
 * Kills the largest processes of the user, as the kernel does, and as many as it takes to get below the limit. Files may be mapped
 * shared memory, so the larger of both counts.
 */
export function decideMemoryAction(
  uses: readonly MemoryUse[],
  { fileBytes, socketBytes: queued }: CommonMemory,
  limitBytes: number,
): MemoryAction {
  const own = uses.reduce((sum, { bytes, heldBytes }) => sum + bytes + heldBytes, 0)
  const shared = uses.reduce((sum, { sharedBytes }) => sum + sharedBytes, 0)
  let excess = own + Math.max(shared, fileBytes) + queued - limitBytes
  if (excess <= 0) return { kind: 'fine' }
  const mortal = uses.filter(({ innerPid }) => !VITAL_PIDS.has(innerPid))
  if (mortal.length === 0) return { kind: 'end' }
  const pids: number[] = []
  for (const [{ pid }, freed] of [...measureFreed(mortal, queued)].toSorted(([, a], [, b]) => b - a)) {
    if (excess <= 0) break
    pids.push(pid)
    excess -= freed
  }
  return { kind: 'kill', pids }
}

/** Descriptors of a process that count nothing; most programs have fewer. */
const FREE_DESCRIPTORS = 256
/** A pipe has two descriptors, and two pages once the user has many pipes. */
const DESCRIPTOR_BYTES = 4_096

function heldBytes({ descriptors, pageTableBytes }: ProcessEntry): number {
  return Math.max(0, descriptors - FREE_DESCRIPTORS) * DESCRIPTOR_BYTES + pageTableBytes
}

/** Proportional memory of a process; its resident memory when that is not readable or takes too long. */
function measure(entry: ProcessEntry, isExact: boolean): MemoryUse {
  const { pid, innerPid, residentBytes } = entry
  return {
    pid,
    innerPid,
    ...((isExact ? proportionalBytes(pid) : undefined) ?? { bytes: residentBytes, sharedBytes: 0 }),
    heldBytes: heldBytes(entry),
    openFiles: isExact ? countOpenFiles(pid) : 0,
  }
}

/** Parses `/proc/PID/smaps_rollup`. */
export function parseRollup(text: string): Pick<MemoryUse, 'bytes' | 'sharedBytes'> | undefined {
  const read = (label: string): number | undefined => {
    const kibibytes = new RegExp(`^${label}:\\s+([0-9]+) kB$`, 'm').exec(text)?.[1]
    return kibibytes === undefined ? undefined : Number(kibibytes) * 1024
  }
  const all = read('Pss')
  const sharedBytes = read('Pss_Shmem') ?? 0
  return all === undefined
    ? undefined
    : { bytes: all - sharedBytes + (read('SwapPss') ?? 0), sharedBytes }
}

function proportionalBytes(pid: number): Pick<MemoryUse, 'bytes' | 'sharedBytes'> | undefined {
  try {
    return parseRollup(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))
  } catch {
    // Non-dumpable, or ended.
    return undefined
  }
}

/** Bytes in the tmpfs folders of a process's root. */
function memoryFileBytes(pid: number | undefined): number {
  if (pid === undefined) return 0
  return MEMORY_FOLDERS.reduce((sum, folder) => {
    try {
      const { blocks, bfree, bsize } = statfsSync(`/proc/${pid}/root/${folder}`)
      return sum + (blocks - bfree) * bsize
    } catch {
      // Ended.
      return sum
    }
  }, 0)
}

/** Consecutive checks above the limit after which the sandbox is stopped: its processes are replaced faster than they are killed. */
const MAX_EXCEEDED = 20
/** Exact sizes are measured for this long, the largest first; the others count with their resident memory, an upper bound. */
const MEASURE_MS = 200

/** Enforces a memory limit on the processes below `rootPid`, where the kernel does not. */
export function watchMemory(rootPid: number, limitBytes: number, endSandbox: () => void): Watch {
  let exceeded = 0
  return {
    intervalMs: MEMORY_POLL_MS,
    check: () => {
      const entries = descendantsOf(rootPid, listProcesses())
      const init = entries.find(({ innerPid }) => innerPid === INIT)?.pid
      const common = {
        fileBytes: memoryFileBytes(init),
        socketBytes: init === undefined ? 0 : socketBytes(init),
      }
      const most = entries.reduce((sum, entry) => sum + entry.residentBytes + heldBytes(entry), 0)
      // An upper bound; the exact figure is more expensive.
      const action: MemoryAction =
        most + common.fileBytes + common.socketBytes <= limitBytes
          ? { kind: 'fine' }
          : decideMemoryAction(measureAll(entries), common, limitBytes)
      exceeded = action.kind === 'fine' ? 0 : exceeded + 1
      if (action.kind === 'kill') for (const pid of action.pids) signalProcess(pid, 'SIGKILL')
      if (action.kind === 'end' || exceeded > MAX_EXCEEDED) endSandbox()
      return action.kind !== 'fine'
    },
  }
}

/** Queues of netlink sockets may take this share of the memory limit, which does not include them. */
const NETLINK_SHARE = 1 / 8
/** More than one netlink socket can queue: twice the default of `rmem_max`. */
const NETLINK_QUEUE_BYTES = 2 * 212_992

/** A sandbox with a cgroup. */
export interface WatchedSockets {
  readonly findInit: () => number | undefined
  readonly pids: () => readonly number[]
  readonly memoryBytes: number
}

/** The processes with the most open files, as many as could hold the excess in sockets. */
function chooseHolders(pids: readonly number[], excessBytes: number): number[] {
  const holders = pids
    .map(findProcess)
    .filter((entry) => entry !== undefined)
    // Without a pid of its own in the sandbox, it is the bubblewrap outside.
    .filter(({ pid, innerPid }) => !VITAL_PIDS.has(innerPid) && innerPid !== pid)
    .map(({ pid }) => ({ pid, open: countOpenFiles(pid) }))
    .toSorted((a, b) => b.open - a.open)
  let rest = excessBytes
  const chosen: number[] = []
  for (const { pid, open } of holders) {
    if (rest <= 0) break
    chosen.push(pid)
    rest -= open * NETLINK_QUEUE_BYTES
  }
  return chosen
}

/** Enforces a limit on what netlink sockets queue: every process may open thousands of them, and cgroups do not count it. */
export function watchNetlink({ findInit, pids, memoryBytes }: WatchedSockets, endSandbox: () => void): Watch {
  const limitBytes = memoryBytes * NETLINK_SHARE
  let exceeded = 0
  return {
    intervalMs: MEMORY_POLL_MS,
    check: () => {
      const init = findInit()
      const isPossible = init !== undefined && countSockets(init) * NETLINK_QUEUE_BYTES > limitBytes
      const excess = isPossible ? netlinkBytes(init) - limitBytes : 0
      if (excess <= 0) {
        exceeded = 0
        return false
      }
      exceeded += 1
      for (const pid of chooseHolders(pids(), excess)) signalProcess(pid, 'SIGKILL')
      if (exceeded > MAX_EXCEEDED) endSandbox()
      return true
    },
  }
}

function measureAll(entries: readonly ProcessEntry[]): MemoryUse[] {
  const deadlineMs = performance.now() + MEASURE_MS
  return entries
    .toSorted((a, b) => b.residentBytes - a.residentBytes)
    .map((entry) => measure(entry, performance.now() < deadlineMs))
}

const DISK_POLL_MS = 1_000
/** Pause between looks at all files of a sandbox that has space left. */
const LOOK_INTERVAL_MS = 2_000
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

/**
 * Looks at the folders until it has seen everything or too much. `find` follows no links and stays on one file system, whatever the
 * sandbox changes meanwhile. Undefined when it took too long.
 */
async function tallyFolders(folders: readonly string[], limitBytes: number): Promise<DiskTally | undefined> {
  const find = ['find', ...folders, '-xdev', '-printf', '%i %b %n\\n']
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
    return tally
  }
  await child.exited
  return child.signalCode === null ? tally : undefined
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

/** Consecutive looks that must find too much in files that cannot be measured: a message with a descriptor may be on its way. */
const MAX_UNMEASURED_LOOKS = 3

/**
 * Stops a sandbox that exceeds its disk limit, where it has no disk image. A look at all files is expensive, so it is repeated only
 * after a pause, or when the file system has grown by as much as the sandbox had left. Files that processes keep without a descriptor
 * cannot be measured: they count with what the file system has grown for no other visible reason, at most with the largest size of a file.
 */
export function watchDisk({ rootPid, folders, limitBytes }: WatchedDisk, endSandbox: () => void): Watch {
  const [first = '/'] = folders
  let nextLookMs = 0
  let usedBefore = 0
  let leftBytes = 0
  let otherBytes: number | undefined
  let unmeasuredLooks = 0
  return {
    intervalMs: DISK_POLL_MS,
    check: async () => {
      const startedMs = performance.now()
      const usedBytes = usedBytesAt(first)
      if (startedMs < nextLookMs && usedBytes - usedBefore < leftBytes) return false
      const tally = await tallyFolders(folders, limitBytes)
      const pids = descendantsOf(rootPid, listProcesses()).map(({ pid }) => pid)
      const bytes = (tally?.bytes ?? 0) + namelessBytes(pids, folders)
      otherBytes ??= usedBytes - bytes
      const grownBytes = usedBytes - bytes - otherBytes
      const mayHide = bytes + grownBytes > limitBytes
      const keptBytes = mayHide ? countKeptFiles(pids) * maxFileBytes({ diskBytes: limitBytes }) : 0
      unmeasuredLooks = bytes + Math.min(grownBytes, keptBytes) > limitBytes ? unmeasuredLooks + 1 : 0
      const isOver = tally === undefined || tally.isOver(limitBytes) || bytes > limitBytes
      if (isOver || unmeasuredLooks >= MAX_UNMEASURED_LOOKS) endSandbox()
      usedBefore = usedBytes
      leftBytes = limitBytes - bytes
      const pauseMs = unmeasuredLooks > 0 ? 0 : pauseAfter(performance.now() - startedMs, LOOK_INTERVAL_MS)
      nextLookMs = performance.now() + pauseMs
      return false
    },
  }
}
