import { readFileSync, statfsSync } from 'node:fs'
import {
  countOpenFiles,
  descendantsOf,
  findProcess,
  listProcesses,
  type ProcessEntry,
  signalProcess,
} from './process-table.ts'
import { sharedMemoryOf } from './shared-memory.ts'
import { countSockets, netlinkBytes, socketBytes } from './socket-memory.ts'

/** A check that is repeated while a sandbox runs. */
export interface Watch {
  /** Pause before each check. */
  readonly intervalMs: number
  /** Measures once, and acts. Returns the pause before the next check; undefined: the interval, or longer if this one was slow. */
  readonly check: () => Promise<number | undefined> | number | undefined
}

/** Largest share of time spent checking, so that a large sandbox does not load the machine. */
const BUSY_SHARE = 0.05

/** Longest pause: a sandbox can exceed its limit by what it writes in this time. */
const MAX_PAUSE_MS = 10_000
/** Pause after a check that found the limit exceeded, so that killed processes can end. */
const EXCEEDED_PAUSE_MS = 50
/** Shortest pause: a sandbox can exceed its limit by what it writes in this time. */
const MIN_POLL_MS = 20
/** What a few processors write in a millisecond. */
const FILL_BYTES_PER_MS = 4 * 1024 ** 2
/** Less growth is no reason to look: other programs cause it all the time. */
const MIN_GROWTH_BYTES = 8 * 1024 ** 2

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
    let pauseMs: number | undefined
    try {
      pauseMs = await watch.check()
    } catch {
      // The processes may be ending; the next check decides.
    }
    schedule(watch, pauseMs ?? pauseAfter(performance.now() - startedMs, watch.intervalMs))
  }
  for (const watch of watches) schedule(watch, watch.intervalMs)
  return {
    [Symbol.dispose]: () => {
      isOver = true
      for (const timer of timers) clearTimeout(timer)
    },
  }
}

/** A measurement of what a sandbox has left of a limit, and of what the whole machine used when it began. */
interface Look {
  readonly startedMs: number
  readonly endedMs: number
  readonly machineBytes: number
  readonly leftBytes: number
}

/**
 * When to repeat an expensive measurement: after a pause, or when the use of the whole machine, which is cheap to read, has grown by what
 * the sandbox had left.
 */
export class LookSchedule {
  readonly #intervalMs: number
  #nextMs = 0
  #tookMs = 0
  #machineBytes = 0
  #leftBytes = 0

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs
  }

  isDue(nowMs: number, machineBytes: number): boolean {
    // What others free must not hide growth.
    this.#machineBytes = Math.min(this.#machineBytes, machineBytes)
    const grownBytes = machineBytes - this.#machineBytes
    return nowMs >= this.#nextMs || grownBytes >= Math.max(this.#leftBytes, MIN_GROWTH_BYTES)
  }

  looked({ startedMs, endedMs, machineBytes, leftBytes }: Look): void {
    this.#tookMs = endedMs - startedMs
    this.#nextMs = endedMs + pauseAfter(this.#tookMs, this.#intervalMs)
    this.#machineBytes = machineBytes
    this.#leftBytes = leftBytes
  }

  /** Pause before asking again: the time in which the sandbox can use up what it has left, at most the interval. */
  pollMs(): number {
    const fillMs = Math.min(this.#leftBytes / FILL_BYTES_PER_MS, this.#intervalMs)
    // Growth can make every poll a measurement.
    return Math.max(MIN_POLL_MS, fillMs, this.#tookMs)
  }
}

/** Pause between looks at a sandbox while the machine's memory does not grow; a shorter one costs CPU. */
const MEMORY_LOOK_MS = 2_000
/** Pause before the first look, so that it does not slow down the start. */
const FIRST_LOOK_MS = 200
/** tmpfs folders that a sandbox can write to. */
const MEMORY_FOLDERS = ['tmp', 'dev/shm']
/** Type of tmpfs in `statfs`. */
const TMPFS_MAGIC = 0x01021994
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
  /** What it holds in the kernel: its page tables, at most by its descriptors, as pipes do, and shared memory that is not resident. */
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
  | { readonly kind: 'fine'; readonly leftBytes: number }
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
  if (excess <= 0) return { kind: 'fine', leftBytes: -excess }
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
  return all === undefined ? undefined : { bytes: all - sharedBytes + (read('SwapPss') ?? 0), sharedBytes }
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
      const { type, blocks, bfree, bsize } = statfsSync(`/proc/${pid}/root/${folder}`)
      // Until init has changed its root, these are folders of the machine.
      return type === TMPFS_MAGIC ? sum + (blocks - bfree) * bsize : sum
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

/** What is not available of the machine's memory and swap, up to a constant. When that is hidden, as if it grew as fast as it can. */
function machineMemoryBytes(): number {
  try {
    const text = readFileSync('/proc/meminfo', 'utf8')
    const read = (label: string): number =>
      Number(new RegExp(`^${label}:\\s+([0-9]+) kB$`, 'm').exec(text)?.[1] ?? 0)
    return -1024 * (read('MemAvailable') + read('SwapFree'))
  } catch {
    // A /proc with processes only.
    return performance.now() * FILL_BYTES_PER_MS
  }
}

/** Shared memory of the whole machine, in RAM and swap, at most. */
function machineSharedBytes(): number {
  try {
    const text = readFileSync('/proc/meminfo', 'utf8')
    const read = (label: string): number =>
      Number(new RegExp(`^${label}:\\s+([0-9]+) kB$`, 'm').exec(text)?.[1] ?? 0)
    return 1024 * (read('Shmem') + read('SwapTotal') - read('SwapFree'))
  } catch {
    // A /proc with processes only.
    return Infinity
  }
}

/** Adds the shared memory that no process has resident, at most `mostBytes` in all. */
function addHiddenMemory(
  uses: readonly MemoryUse[],
  shares: ReadonlyMap<number, number>,
  mostBytes: number,
): MemoryUse[] {
  const hidden = uses.map(({ pid, sharedBytes }) => Math.max(0, (shares.get(pid) ?? 0) - sharedBytes))
  const all = hidden.reduce((sum, bytes) => sum + bytes, 0)
  const scale = all > mostBytes ? mostBytes / all : 1
  return uses.map((use, index) => ({ ...use, heldBytes: use.heldBytes + (hidden[index] ?? 0) * scale }))
}

/** Enforces a memory limit on the processes below `rootPid`, where the kernel does not. */
export function watchMemory(rootPid: number, limitBytes: number, endSandbox: () => void): Watch {
  const schedule = new LookSchedule(MEMORY_LOOK_MS)
  let exceeded = 0
  const look = (): MemoryAction => {
    const entries = descendantsOf(rootPid, listProcesses())
    const init = entries.find(({ innerPid }) => innerPid === INIT)?.pid
    const common = {
      fileBytes: memoryFileBytes(init),
      socketBytes: init === undefined ? 0 : socketBytes(init),
    }
    const most = entries.reduce((sum, entry) => sum + entry.residentBytes + heldBytes(entry), 0)
    // An upper bound; the exact figure is more expensive.
    const leftBytes = limitBytes - most - common.fileBytes - common.socketBytes
    const mostHidden = Math.max(0, machineSharedBytes() - common.fileBytes)
    if (leftBytes >= mostHidden) return { kind: 'fine', leftBytes }
    const shares = sharedMemoryOf(
      entries.map(({ pid }) => pid),
      performance.now() + MEASURE_MS,
    )
    const hidden = [...shares.values()].reduce((sum, bytes) => sum + bytes, 0)
    if (leftBytes >= Math.min(hidden, mostHidden)) return { kind: 'fine', leftBytes }
    return decideMemoryAction(addHiddenMemory(measureAll(entries), shares, mostHidden), common, limitBytes)
  }
  return {
    intervalMs: FIRST_LOOK_MS,
    check: () => {
      const startedMs = performance.now()
      const machineBytes = machineMemoryBytes()
      if (exceeded === 0 && !schedule.isDue(startedMs, machineBytes)) return schedule.pollMs()
      const action = look()
      if (action.kind === 'fine') {
        exceeded = 0
        schedule.looked({ startedMs, endedMs: performance.now(), machineBytes, leftBytes: action.leftBytes })
        return schedule.pollMs()
      }
      exceeded += 1
      if (action.kind === 'kill') for (const pid of action.pids) signalProcess(pid, 'SIGKILL')
      if (action.kind === 'end' || exceeded > MAX_EXCEEDED) endSandbox()
      return EXCEEDED_PAUSE_MS
    },
  }
}

const NETLINK_LOOK_MS = 500
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
    intervalMs: NETLINK_LOOK_MS,
    check: () => {
      const init = findInit()
      const isPossible = init !== undefined && countSockets(init) * NETLINK_QUEUE_BYTES > limitBytes
      const excess = isPossible ? netlinkBytes(init) - limitBytes : 0
      if (excess <= 0) {
        exceeded = 0
        return undefined
      }
      exceeded += 1
      for (const pid of chooseHolders(pids(), excess)) signalProcess(pid, 'SIGKILL')
      if (exceeded > MAX_EXCEEDED) endSandbox()
      return EXCEEDED_PAUSE_MS
    },
  }
}

function measureAll(entries: readonly ProcessEntry[]): MemoryUse[] {
  const deadlineMs = performance.now() + MEASURE_MS
  return entries
    .toSorted((a, b) => b.residentBytes - a.residentBytes)
    .map((entry) => measure(entry, performance.now() < deadlineMs))
}
