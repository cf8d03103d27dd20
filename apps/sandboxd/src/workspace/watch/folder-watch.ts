import type { Readiness } from '../../processes/linux/readiness.ts'
import type { AsUser } from '../../processes/run-as.ts'
import type { Files } from '../files.ts'
import { isHiddenName } from '../files/context.ts'
import { pathIn } from '../beneath/path.ts'
import type { NoticeQueue } from './change-notices.ts'
import { type QueueEvent, InotifyQueue } from './inotify-queue.ts'

/** The name that the kernel reports for an unnamed file (O_TMPFILE). */
const UNNAMED_FILE = /(^|\/)#\d+$/

/** Deeper folders are not watched. */
const MAX_DEPTH = 200
/** Entries read while folders are searched. */
const MAX_NODES = 2_000_000
const WALK_MS = 60_000
/** Delay between a lost event and the next scan, so that a flood of events does not cause a flood of scans. */
const REWATCH_DELAY_MS = 1_000

interface FolderWatchOptions {
  /** Relative to the workspace; empty for the workspace itself. */
  readonly path: string
  readonly isRecursive: boolean
  readonly maxFolders: number
}

interface FolderWatchDependencies {
  readonly files: Pick<Files, 'openFolder' | 'stat' | 'walk'>
  readonly asUser: AsUser
  readonly readiness: Readiness
}

/** A folder that must be scanned, because it is new or events were lost. */
interface Task {
  readonly path: string
  /** Its contents are new as well and are reported. */
  readonly isNew: boolean
}

/**
 * Watches a folder or a whole tree with inotify. A folder is watched before it is scanned, so that an entry of a new folder is
 * reported either by the scan or by the kernel. Paths are those at the time of the event. When the watched folder or one above
 * it is moved or removed, the watch ends.
 */
export class FolderWatch {
  readonly #options: FolderWatchOptions
  readonly #deps: FolderWatchDependencies
  readonly #notices: NoticeQueue
  readonly #stop = new AbortController()
  #queue: InotifyQueue
  readonly #tasks: Task[] = []
  #isWorking = false
  #hasLost = false

  private constructor(
    queue: InotifyQueue,
    notices: NoticeQueue,
    options: FolderWatchOptions,
    deps: FolderWatchDependencies,
  ) {
    this.#queue = queue
    this.#notices = notices
    this.#options = options
    this.#deps = deps
  }

  /** Undefined when the system has no inotify instance left; rejects when the folder cannot be opened. */
  static async open(
    notices: NoticeQueue,
    options: FolderWatchOptions,
    deps: FolderWatchDependencies,
  ): Promise<FolderWatch | undefined> {
    const queue = InotifyQueue.open(deps.asUser)
    if (queue === undefined) return undefined
    const watch = new FolderWatch(queue, notices, options, deps)
    try {
      await watch.#begin()
    } catch (error) {
      watch.close()
      throw error
    }
    void watch.#work()
    return watch
  }

  /** Stops watching. */
  close(): void {
    if (this.#stop.signal.aborted) return
    this.#stop.abort()
    this.#release()
    this.#notices.end()
  }

  #release(): void {
    this.#deps.readiness.unwatch(this.#queue.fd)
    this.#queue.close()
  }

  async #begin(): Promise<void> {
    this.#deps.readiness.watch(this.#queue.fd, () => this.#read())
    const { path, isRecursive } = this.#options
    for (const above of ancestorsOf(path)) this.#queue.addAncestor(await this.#open(above))
    this.#add(path, await this.#open(path))
    if (isRecursive) this.#tasks.push({ path, isNew: false })
  }

  #open(path: string): Promise<number> {
    return this.#deps.files.openFolder(path === '' ? '.' : path)
  }

  #add(path: string, folder: number): boolean {
    const isWatched = this.#queue.add(path, folder)
    if (!isWatched) this.#notices.overflow('folders')
    return isWatched
  }

  /** Returns false when the folder is gone, not readable or over the limit. */
  async #watchFolder(path: string): Promise<boolean> {
    if (!this.#hasRoom()) return false
    let folder: number
    try {
      folder = await this.#open(path)
    } catch {
      // Gone, which has an event of its own, or not readable.
      return false
    }
    return this.#add(path, folder)
  }

  /** Runs all tasks; then everything is watched. */
  async #work(): Promise<void> {
    if (this.#isWorking) return
    this.#isWorking = true
    for (;;) {
      const task = this.#tasks.shift()
      if (task === undefined || this.#stop.signal.aborted) break
      await this.#coverFolder(task)
    }
    this.#isWorking = false
    if (!this.#stop.signal.aborted) this.#notices.ready(this.#queue.size)
  }

  /** Watches all folders below one. Repeats the scan until it finds nothing new: a folder may be created during a scan. */
  async #coverFolder({ path, isNew }: Task): Promise<void> {
    if (isNew && !(await this.#watchFolder(path))) return
    const reported = new Set<string>()
    try {
      while ((await this.#scanFolders(path, isNew ? reported : undefined)) > 0);
    } catch {
      // Removed during the scan; its watch may be on a folder that was moved. Without the top folder there is nothing to
      // watch.
      if (isNew) this.#queue.forget(path)
      else this.close()
    }
  }

  /** Watches folders that are not watched yet; returns their number. If there are too many, those near the top are preferred. */
  async #scanFolders(path: string, reported: Set<string> | undefined): Promise<number> {
    const unknown: string[] = []
    const limits = { maxNodes: MAX_NODES, maxDepth: MAX_DEPTH, timeMs: WALK_MS }
    const reached = (): void => this.#notices.overflow('folders')
    const walk = this.#deps.files.walk(path === '' ? '.' : path, { ...limits, reached }, this.#stop.signal)
    for await (const batch of walk) {
      for (const { name, kind, path: inside } of batch) {
        if (isHiddenName(name)) continue
        const found = pathIn(path, inside)
        if (kind === 'folder' && !this.#queue.has(found)) unknown.push(found)
        if (reported === undefined || reported.has(found)) continue
        reported.add(found)
        this.#notices.add({ path: found, kind: 'created' })
      }
    }
    let added = 0
    for (const folder of unknown.toSorted(byDepth)) {
      if (!this.#hasRoom()) break
      if (await this.#watchFolder(folder)) added += 1
    }
    return added
  }

  #hasRoom(): boolean {
    if (this.#queue.size < this.#options.maxFolders) return true
    this.#notices.overflow('folders')
    return false
  }

  #read(): void {
    for (const event of this.#queue.take()) this.#handle(event)
    if (this.#tasks.length > 0) void this.#work()
  }

  #handle(event: QueueEvent): void {
    switch (event.kind) {
      case 'lost':
        return this.#handleLoss()
      case 'gone':
        // For other folders, the parent reports it as well.
        return event.path === undefined || event.path === this.#options.path ? this.#endOnMove() : undefined
      case 'created':
        this.#notices.add({ path: event.path, kind: 'created' })
        return event.isFolder && this.#options.isRecursive ? this.#enqueue(event.path) : undefined
      case 'removed':
        this.#notices.add({ path: event.path, kind: 'removed' })
        return event.isFolder ? this.#queue.forget(event.path) : undefined
      case 'changed':
        if (UNNAMED_FILE.test(event.path)) void this.#reportIfPresent(event.path)
        else this.#notices.add({ path: event.path, kind: 'changed' })
    }
  }

  async #reportIfPresent(path: string): Promise<void> {
    try {
      await this.#deps.files.stat(path)
      this.#notices.add({ path, kind: 'changed' })
    } catch {
      // An unnamed file, or one that is gone, which has an event of its own.
    }
  }

  #enqueue(path: string): void {
    if (this.#tasks.length >= this.#options.maxFolders) this.#notices.overflow('folders')
    else this.#tasks.push({ path, isNew: true })
  }

  /** Its path has changed, so reported paths would be wrong. */
  #endOnMove(): void {
    const { path } = this.#options
    this.#notices.add({ path: path === '' ? '.' : path, kind: 'removed' })
    this.close()
  }

  /** Events were lost, so the set of watched folders may be wrong: starts again after a delay. */
  #handleLoss(): void {
    this.#notices.overflow('queue')
    if (this.#hasLost) return
    this.#hasLost = true
    const timer = setTimeout(() => void this.#restart(), REWATCH_DELAY_MS)
    this.#stop.signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
  }

  async #restart(): Promise<void> {
    const queue = InotifyQueue.open(this.#deps.asUser)
    if (queue === undefined) return this.close()
    this.#release()
    this.#queue = queue
    this.#tasks.length = 0
    this.#hasLost = false
    try {
      await this.#begin()
      // Changes between the two queues are in neither.
      this.#notices.overflow('queue')
      await this.#work()
    } catch {
      if (!this.#stop.signal.aborted) this.#endOnMove()
    }
  }
}

/** The ancestors of a path, from the workspace on; none for the workspace itself. */
function ancestorsOf(path: string): string[] {
  if (path === '') return []
  const names = path.split('/')
  return names.map((_, count) => names.slice(0, count).join('/'))
}

function byDepth(left: string, right: string): number {
  return left.split('/').length - right.split('/').length
}
