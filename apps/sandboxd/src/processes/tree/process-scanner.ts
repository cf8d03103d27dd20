import { isAlive, listPids, type MarkedEntry, type ProcessEntry, readMarked } from './process-table.ts'
import { type ProcessTree, type ProcessTreeView, selectProcessTrees } from './process-tree.ts'

/** Longest time without a pause, so that input and output of other sessions are not delayed. */
const SLICE_MS = 2

/** Requests answered between two pauses: each caller signals the processes that it gets. */
const ANSWERS_PER_SLICE = 16

/** How often processes are checked that may exit. */
const POLL_MS = 15

/** What a scan that failed, for example without free descriptors, says about every tree. */
const UNKNOWN: ProcessTreeView = { members: [], isCertain: false }

interface Request {
  readonly tree: ProcessTree
  readonly resolve: (view: ProcessTreeView) => void
}

interface Watch {
  readonly members: readonly ProcessEntry[]
  readonly deadlineMs: number
  readonly resolve: (hasChanged: boolean) => void
}

/** Reads the process table; replaced in tests. */
export interface ProcessTable {
  readonly listPids: () => readonly number[]
  readonly readMarked: (pid: number) => MarkedEntry | undefined
  readonly isAlive: (entry: ProcessEntry) => boolean
}

/**
 * Finds the processes of sessions. A scan of the process table answers all requests that were made before it began, so ending
 * many sessions costs as many scans as ending one.
 */
export class ProcessScanner {
  readonly #table: ProcessTable
  #requests: Request[] = []
  #isScanning = false
  /** Least recently checked first. */
  #watches: Watch[] = []
  #isPolling = false

  constructor(table: ProcessTable = { listPids, readMarked, isAlive }) {
    this.#table = table
  }

  /** Every living process of the tree, by a scan that begins after this call. */
  find(tree: ProcessTree): Promise<ProcessTreeView> {
    const { promise, resolve } = Promise.withResolvers<ProcessTreeView>()
    this.#requests.push({ tree, resolve })
    if (!this.#isScanning) void this.#scan()
    return promise
  }

  /** Whether a living process has a name that begins like this. True when the table cannot be read. */
  async hasName(prefix: string): Promise<boolean> {
    try {
      const table = await this.#readTable()
      return table.some(({ name, isDead }) => !isDead && name.startsWith(prefix))
    } catch {
      return true
    }
  }

  /** Resolves with true when one of the processes may have exited, with false at the deadline. */
  awaitChange(members: readonly ProcessEntry[], deadlineMs: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.#watches.push({ members, deadlineMs, resolve })
    if (!this.#isPolling) this.#schedulePoll()
    return promise
  }

  async #scan(): Promise<void> {
    this.#isScanning = true
    while (this.#requests.length > 0) {
      // Requests of the same turn are answered by the same scan.
      await pause()
      const requests = this.#requests
      this.#requests = []
      const views = await this.#select(requests.map(({ tree }) => tree))
      for (const [index, { tree, resolve }] of requests.entries()) {
        resolve(views.get(tree) ?? UNKNOWN)
        if (index % ANSWERS_PER_SLICE === ANSWERS_PER_SLICE - 1) await pause()
      }
    }
    this.#isScanning = false
  }

  async #select(trees: readonly ProcessTree[]): Promise<ReadonlyMap<ProcessTree, ProcessTreeView>> {
    try {
      return selectProcessTrees(trees, await this.#readTable())
    } catch {
      // Callers scan again until their deadline.
      return new Map()
    }
  }

  async #readTable(): Promise<readonly MarkedEntry[]> {
    const entries: MarkedEntry[] = []
    let sliceEndMs = performance.now() + SLICE_MS
    for (const pid of this.#table.listPids()) {
      const entry = this.#table.readMarked(pid)
      if (entry !== undefined) entries.push(entry)
      if (performance.now() < sliceEndMs) continue
      await pause()
      sliceEndMs = performance.now() + SLICE_MS
    }
    return entries
  }

  /** Checks as many watched processes as fit into one slice; the others follow in the next one. */
  #poll(): void {
    const nowMs = performance.now()
    const unchecked = this.#watches
    const kept: Watch[] = []
    let at = 0
    for (; at < unchecked.length && performance.now() < nowMs + SLICE_MS; at += 1) {
      const watch = unchecked[at]
      if (watch === undefined) continue
      if (nowMs >= watch.deadlineMs) watch.resolve(false)
      else if (!this.#areAlive(watch.members)) watch.resolve(true)
      else kept.push(watch)
    }
    const rest = unchecked.slice(at).filter(({ deadlineMs, resolve }) => {
      if (nowMs >= deadlineMs) resolve(false)
      return nowMs < deadlineMs
    })
    this.#watches = [...rest, ...kept]
    if (this.#watches.length > 0) this.#schedulePoll()
    else this.#isPolling = false
  }

  #schedulePoll(): void {
    this.#isPolling = true
    setTimeout(() => this.#poll(), POLL_MS)
  }

  #areAlive(members: readonly ProcessEntry[]): boolean {
    return members.length > 0 && members.every((member) => this.#table.isAlive(member))
  }
}

/** Lets the event loop handle input and output. */
function pause(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
