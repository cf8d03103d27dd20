import { readFileSync, statfsSync, statSync } from 'node:fs'
import { inodesFor } from './disk-image.ts'
import {
  descendantsOf,
  listOpenFiles,
  listProcesses,
  type OpenFile,
  type ProcessEntry,
  signalProcess,
  sumOnce,
} from './process-table.ts'
import { ownSystemFolders, usrLinks } from './system-files.ts'
import { SYSTEM_ENV } from './system-tools.ts'

/** A check that is repeated while a sandbox runs. */
export interface Watch {
  /** Pause before each check. */
  readonly intervalMs: number
  /** Measures once, and acts. */
  readonly check: () => Promise<void> | void
}

/** Largest share of time spent checking, so that a large sandbox does not load the machine. */
const BUSY_SHARE = 0.05

/** Pause after a check that took `tookMs`. */
export function pauseAfter(tookMs: number, intervalMs: number): number {
  return Math.max(intervalMs, tookMs / BUSY_SHARE)
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
    try {
      await watch.check()
    } catch {
      // The processes may be ending; the next check decides.
    }
    schedule(watch, pauseAfter(performance.now() - startedMs, watch.intervalMs))
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
const VITAL_PIDS = new Set([1, 2])

/** Memory of one process. */
export interface MemoryUse {
  readonly pid: number
  readonly innerPid: number
  /** Private memory, and its share of mapped files. */
  readonly bytes: number
  /** Its share of mapped shared memory. */
  readonly sharedBytes: number
  /** Memory files that it holds open, mapped or not. */
  readonly heldBytes: number
}

/** What to do: nothing, kill one process, or stop the sandbox when init and sandboxd alone exceed the limit. */
export type MemoryAction =
  | { readonly kind: 'fine' }
  | { readonly kind: 'kill'; readonly pid: number }
  | { readonly kind: 'end' }

function sizeOf({ bytes, sharedBytes, heldBytes }: MemoryUse): number {
  return bytes + Math.max(sharedBytes, heldBytes)
}

/**
 * Kills the largest process of the user first, as the kernel does. `heldBytes` is the total of memory files and tmpfs, each counted
 * once. It may overlap with mapped shared memory, so the larger of both counts.
 */
export function decideMemoryAction(
  uses: readonly MemoryUse[],
  heldBytes: number,
  limitBytes: number,
): MemoryAction {
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

/** Proportional memory of a process; its resident memory when that is not readable. */
function measure(entry: ProcessEntry, held: readonly OpenFile[]): MemoryUse {
  const { pid, innerPid, residentBytes } = entry
  return {
    pid,
    innerPid,
    ...(proportionalBytes(pid) ?? { bytes: residentBytes, sharedBytes: 0 }),
    heldBytes: sumOnce(held),
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
  return all === undefined ? undefined : { bytes: all - sharedBytes, sharedBytes }
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

/** Enforces a memory limit on the processes below `rootPid`, where the kernel does not. */
export function watchMemory(rootPid: number, limitBytes: number, endSandbox: () => void): Watch {
  return {
    intervalMs: MEMORY_POLL_MS,
    check: () => {
      const entries = descendantsOf(rootPid, listProcesses())
      const open = new Map(entries.map(({ pid }) => [pid, listOpenFiles(pid, 'memory')]))
      const inFiles = memoryFileBytes(entries.find(({ innerPid }) => innerPid === INIT)?.pid)
      const held = inFiles + sumOnce([...open.values()].flat())
      const resident = entries.reduce((sum, { residentBytes }) => sum + residentBytes, 0)
      // An upper bound; the exact figure is more expensive.
      if (resident + held <= limitBytes) return
      const uses = entries.map((entry) => measure(entry, open.get(entry.pid) ?? []))
      const verdict = decideMemoryAction(uses, held, limitBytes)
      if (verdict.kind === 'kill') signalProcess(verdict.pid, 'SIGKILL')
      if (verdict.kind === 'end') endSandbox()
    },
  }
}

const DISK_POLL_MS = 2_000
/** A longer `du` is killed; the next one finds more in the cache. */
const DU_TIMEOUT_MS = 60_000

/** Sum of the first column of `du`'s output. */
export function sumOfLines(text: string): number {
  return text
    .split('\n')
    .map((line) => Number.parseInt(line, 10))
    .filter((value) => !Number.isNaN(value))
    .reduce((sum, value) => sum + value, 0)
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

/** `du` follows no links and stays on one file system, whatever the sandbox changes meanwhile. */
async function usage(folders: readonly string[], what: '--block-size=1' | '--inodes'): Promise<number> {
  const du = ['du', '--summarize', '--one-file-system', what, '--', ...folders]
  const child = Bun.spawn([...asReader(folders), ...du], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
    env: SYSTEM_ENV,
    timeout: DU_TIMEOUT_MS,
  })
  return sumOfLines(await new Response(child.stdout).text())
}

/** Bytes of deleted files that processes below `rootPid` hold open. */
function namelessBytes(rootPid: number, folders: readonly string[]): number {
  const devices = new Set(folders.map((folder) => statSync(folder).dev))
  const open = descendantsOf(rootPid, listProcesses()).flatMap(({ pid }) => listOpenFiles(pid, 'all'))
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

/** Stops a sandbox that exceeds its disk limit, where it has no disk image. */
export function watchDisk({ rootPid, folders, limitBytes }: WatchedDisk, endSandbox: () => void): Watch {
  return {
    intervalMs: DISK_POLL_MS,
    check: async () => {
      const named = await usage(folders, '--block-size=1')
      const isOver =
        named + namelessBytes(rootPid, folders) > limitBytes ||
        (await usage(folders, '--inodes')) > inodesFor(limitBytes)
      if (isOver) endSandbox()
    },
  }
}
