import { readdirSync, readFileSync } from 'node:fs'

/** Scans until no new process appears: one for each generation, and more if one forks before it is stopped. */
const MAX_SCANS = 100
/**
 * Checks of processes that were told to stop: one in a system call stops after it, and on a busy machine any has to get its turn
 * first. Until then, a shell in `wait` would still learn that its job has stopped, and take the terminal from it.
 */
const MAX_CHECKS = 1_000
const CHECK_AGAIN_MS = 0.2

interface ProcessStat {
  readonly pid: number
  readonly parent: number
  readonly state: string
}

export interface ProcessSystem {
  readonly list: () => readonly ProcessStat[]
  /** State of every thread; none when the process is gone. */
  readonly threadStates: (pid: number) => readonly string[]
  /** False when the process is gone or may not be signaled. */
  readonly signal: (pid: number, signal: 'SIGSTOP' | 'SIGCONT') => boolean
  readonly sleep: (ms: number) => void
  readonly ownPid: number
}

const LINUX_PROCESSES: ProcessSystem = {
  list: () =>
    readdirSync('/proc')
      .filter((name) => /^[0-9]+$/.test(name))
      .flatMap((name) => readStat(Number(name))),
  threadStates: (pid) => {
    try {
      return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
        readStat(pid, `task/${thread}/`).map(({ state }) => state),
      )
    } catch {
      return []
    }
  },
  signal: (pid, signal) => {
    try {
      return process.kill(pid, signal)
    } catch {
      return false
    }
  },
  sleep: (ms) => Bun.sleepSync(ms),
  ownPid: process.pid,
}

/** The process, or one of its threads: `task/ID/`. */
function readStat(pid: number, thread = ''): ProcessStat[] {
  try {
    const text = readFileSync(`/proc/${pid}/${thread}stat`, 'latin1')
    // The name is in parentheses and may contain any character.
    const [state = '', parent = ''] = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return [{ pid, state, parent: Number(parent) }]
  } catch {
    // It ended since the folder was read.
    return []
  }
}

const STOPPED = new Set(['T', 't'])
const ENDED = new Set(['Z', 'X'])

/** Descendants of a process with their distance from it. */
function descendants(
  all: readonly ProcessStat[],
  root: number,
): readonly (ProcessStat & { readonly depth: number })[] {
  const children = Map.groupBy(all, ({ parent }) => parent)
  const found: (ProcessStat & { depth: number })[] = []
  const queue = [{ pid: root, depth: 0 }]
  for (const { pid, depth } of queue)
    for (const child of children.get(pid) ?? []) {
      found.push({ ...child, depth: depth + 1 })
      queue.push({ pid: child.pid, depth: depth + 1 })
    }
  return found
}

/**
 * Stops every process below this one that was running, so that files do not change. Returns a function that lets them go on. A
 * process that was stopped before stays stopped.
 */
export function pauseProcesses(system: ProcessSystem = LINUX_PROCESSES): () => void {
  const stopped = new Map<number, number>()
  const skipped = new Set<number>()
  for (let scans = 0; scans < MAX_SCANS; scans += 1) {
    const fresh = descendants(system.list(), system.ownPid).filter(
      ({ pid, state }) => !stopped.has(pid) && !skipped.has(pid) && !ENDED.has(state),
    )
    // Parents first: a shell that still runs when its job stops takes the terminal back from the job.
    const depth = Math.min(...fresh.map((process) => process.depth))
    const next = fresh.filter((process) => process.depth === depth)
    if (next.length === 0) break
    for (const { pid, state } of next)
      if (STOPPED.has(state) || !system.signal(pid, 'SIGSTOP')) skipped.add(pid)
      else stopped.set(pid, depth)
    waitUntilStopped(
      system,
      next.map(({ pid }) => pid).filter((pid) => stopped.has(pid)),
    )
  }
  return () => {
    // Children first: a shell that goes on before its job would report the job as stopped.
    const order = [...stopped].sort(([, a], [, b]) => b - a)
    for (const [pid] of order) system.signal(pid, 'SIGCONT')
  }
}

/** Every thread: one that is in a system call stops after it, and may write until then. */
function waitUntilStopped(system: ProcessSystem, pids: Iterable<number>): void {
  const running = new Set(pids)
  for (let checks = 0; checks < MAX_CHECKS; checks += 1) {
    for (const pid of running) if (!system.threadStates(pid).some(isRunning)) running.delete(pid)
    if (running.size === 0) return
    system.sleep(CHECK_AGAIN_MS)
  }
}

function isRunning(state: string): boolean {
  return !STOPPED.has(state) && !ENDED.has(state) && state !== 'D'
}
