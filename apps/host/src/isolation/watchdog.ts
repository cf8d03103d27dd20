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

/** A measurement that is repeated while a sandbox runs. */
export interface Watch {
  /** Pause before each look. */
  readonly everyMs: number
  /** Looks once, and acts. */
  readonly look: () => Promise<void> | void
}

/** A look may take this part of the time at most, so that watching a large sandbox does not load the machine. */
const BUSY_SHARE = 0.05

/** Pause after a look that took `tookMs`. */
export function pauseAfter(tookMs: number, everyMs: number): number {
  return Math.max(everyMs, tookMs / BUSY_SHARE)
}

/** Repeats the looks until disposed. */
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
      await watch.look()
    } catch {
      // What it looks at may be vanishing; the next look tells.
    }
    schedule(watch, pauseAfter(performance.now() - startedMs, watch.everyMs))
  }
  for (const watch of watches) schedule(watch, watch.everyMs)
  return {
    [Symbol.dispose]: () => {
      isOver = true
      for (const timer of timers) clearTimeout(timer)
    },
  }
}

/** Between two looks a sandbox can take what it can write in this time; more often costs processor all the time. */
const MEMORY_POLL_MS = 500
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
export type MemoryAction =
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
    everyMs: MEMORY_POLL_MS,
    look: () => {
      const entries = descendantsOf(rootPid, listProcesses())
      const open = new Map(entries.map(({ pid }) => [pid, listOpenFiles(pid, 'memory')]))
      const inFiles = memoryFileBytes(entries.find(({ innerPid }) => innerPid === INIT)?.pid)
      const held = inFiles + sumOnce([...open.values()].flat())
      const resident = entries.reduce((sum, { residentBytes }) => sum + residentBytes, 0)
      // The exact figure costs more, and is never above this one.
      if (resident + held <= limitBytes) return
      const uses = entries.map((entry) => measure(entry, open.get(entry.pid) ?? []))
      const verdict = decideMemoryAction(uses, held, limitBytes)
      if (verdict.kind === 'kill') signalProcess(verdict.pid, 'SIGKILL')
      if (verdict.kind === 'end') endSandbox()
    },
  }
}

const DISK_POLL_MS = 2_000
/** A look that takes longer is given up; the next one finds more in the cache. */
const POLL_MS = 60_000

/** Adds up the first column of what `du` says. */
export function sumOfLines(text: string): number {
  return text
    .split('\n')
    .map((line) => Number.parseInt(line, 10))
    .filter((value) => !Number.isNaN(value))
    .reduce((sum, value) => sum + value, 0)
}

/**
 * Start of a command that reads what is in the folders whatever rights they have: the user who owns files may look into them as the root
 * of a user namespace. Root needs nothing of the kind.
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

/** `du` follows no links and stays on one file system, whatever the sandbox does to its folders meanwhile. */
async function usage(folders: readonly string[], what: '--block-size=1' | '--inodes'): Promise<number> {
  const du = ['du', '--summarize', '--one-file-system', what, '--', ...folders]
  const child = Bun.spawn([...asReader(folders), ...du], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
    env: SYSTEM_ENV,
    timeout: POLL_MS,
  })
  return sumOfLines(await new Response(child.stdout).text())
}

/** What files take that processes below `rootPid` hold open and that have no name any more. */
function namelessBytes(rootPid: number, folders: readonly string[]): number {
  const devices = new Set(folders.map((folder) => statSync(folder).dev))
  const open = descendantsOf(rootPid, listProcesses()).flatMap(({ pid }) => listOpenFiles(pid, 'all'))
  return sumOnce(open.filter(({ device, isNamed }) => !isNamed && devices.has(device)))
}

/** A sandbox whose disk has no size of its own. */
export interface WatchedDisk {
  /** Process that everything in the sandbox hangs on. */
  readonly rootPid: number
  /** Where on this machine the sandbox can write. */
  readonly folders: readonly string[]
  readonly limitBytes: number
}

/** Ends a sandbox whose files are more than it may have, where its disk has no size of its own. */
export function watchDisk({ rootPid, folders, limitBytes }: WatchedDisk, endSandbox: () => void): Watch {
  return {
    everyMs: DISK_POLL_MS,
    look: async () => {
      const named = await usage(folders, '--block-size=1')
      const isOver =
        named + namelessBytes(rootPid, folders) > limitBytes ||
        (await usage(folders, '--inodes')) > inodesFor(limitBytes)
      if (isOver) endSandbox()
    },
  }
}
