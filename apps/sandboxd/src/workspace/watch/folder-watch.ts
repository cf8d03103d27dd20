import type { Readiness } from '../../processes/linux/readiness.ts'
import type { AsUser } from '../../processes/tree/run-as.ts'
import type { Files } from '../files.ts'
import { isHiddenName } from '../files/context.ts'
import { pathIn } from '../beneath/path.ts'
import type { NoticeQueue } from './change-notices.ts'
import { type QueueEvent, WatchQueue } from './inotify-queue.ts'

/** How the kernel calls a file that is being written before it has a name. */
const UNNAMED_FILE = /(^|\/)#\d+$/

/** Beneath it nobody has a project. */
const MAX_DEPTH = 200
/** Names looked at when folders are looked for. */
const MAX_NODES = 2_000_000
const WALK_MS = 60_000
/** From one loss of events to the next look at all folders, so that a flood is not answered with another one. */
const REWATCH_DELAY_MS = 1_000

interface FolderWatchOptions {
  /** From the workspace; empty for the workspace itself. */
  readonly path: string
  readonly isRecursive: boolean
  readonly maxFolders: number
}

interface FolderWatchDependencies {
  readonly files: Pick<Files, 'openFolder' | 'stat' | 'walk'>
  readonly asUser: AsUser
  readonly readiness: Readiness
}

/** A folder whose contents have to be found, because it is new or because events were lost. */
interface Task {
  readonly path: string
  /** What is in it came with it, and is reported. */
  readonly isNew: boolean
}

/**
 * Watches a folder, or a whole tree, by the kernel's inotify. Folders are watched before they are looked into, so that what comes
 * into a new one is reported either by the look or by the kernel. Paths are what they were when events happened; a folder that is
 * watched, or one above it, ends the watching when it goes away.
 */
export class FolderWatch {
  readonly #options: FolderWatchOptions
  readonly #deps: FolderWatchDependencies
  readonly #notices: NoticeQueue
  readonly #stop = new AbortController()
  #queue: WatchQueue
  readonly #tasks: Task[] = []
  #isWorking = false
  #hasLost = false

  private constructor(
    queue: WatchQueue,
    notices: NoticeQueue,
    options: FolderWatchOptions,
    deps: FolderWatchDependencies,
  ) {
    this.#queue = queue
    this.#notices = notices
    this.#options = options
    this.#deps = deps
  }

  /** Undefined when the system has no more queues; rejects when the folder cannot be opened. */
  static async open(
    notices: NoticeQueue,
    options: FolderWatchOptions,
    deps: FolderWatchDependencies,
  ): Promise<FolderWatch | undefined> {
    const queue = WatchQueue.open(deps.asUser)
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

  /** Ends everything; what happens from now on is reported to nobody. */
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
    for (const above of foldersAbove(path)) this.#queue.addAbove(await this.#open(above))
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

  /** False when the folder is gone, not for this user, or one too many. */
  async #watchFolder(path: string): Promise<boolean> {
    if (!this.#hasRoom()) return false
    let folder: number
    try {
      folder = await this.#open(path)
    } catch {
      // Gone meanwhile, which is reported by its own event, or not to be read, which everybody who looks finds out.
      return false
    }
    return this.#add(path, folder)
  }

  /** One task after the other, until none is left; then everything is watched. */
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

  /** Watches all folders below one. Looks again until there is nothing new: a folder may come while others are looked into. */
  async #coverFolder({ path, isNew }: Task): Promise<void> {
    if (isNew && !(await this.#watchFolder(path))) return
    const reported = new Set<string>()
    try {
      while ((await this.#scanFolders(path, isNew ? reported : undefined)) > 0);
    } catch {
      // Gone while it was looked into. Its watch may by now be on a folder that is elsewhere. Without the first one there is nothing.
      if (isNew) this.#queue.forget(path)
      else this.close()
    }
  }

  /** Number of folders that were not watched yet, and are now. If there are too many, those near the top are. */
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
      case 'left':
        // Of the others, the folder they are in tells as well.
        return event.path === undefined || event.path === this.#options.path ? this.#endOnMove() : undefined
      case 'came':
        this.#notices.add({ path: event.path, kind: 'created' })
        return event.isFolder && this.#options.isRecursive ? this.#enqueue(event.path) : undefined
      case 'went':
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
      // A file without a name, or one that is gone, which has its own event.
    }
  }

  #enqueue(path: string): void {
    if (this.#tasks.length >= this.#options.maxFolders) this.#notices.overflow('folders')
    else this.#tasks.push({ path, isNew: true })
  }

  /** The folder is not where it was: what is reported of it would be wrong. */
  #endOnMove(): void {
    const { path } = this.#options
    this.#notices.add({ path: path === '' ? '.' : path, kind: 'removed' })
    this.close()
  }

  /** Events were lost, and with them what is known of folders: after a pause it begins anew. */
  #handleLoss(): void {
    this.#notices.overflow('queue')
    if (this.#hasLost) return
    this.#hasLost = true
    const timer = setTimeout(() => void this.#restart(), REWATCH_DELAY_MS)
    this.#stop.signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
  }

  async #restart(): Promise<void> {
    const queue = WatchQueue.open(this.#deps.asUser)
    if (queue === undefined) return this.close()
    this.#release()
    this.#queue = queue
    this.#tasks.length = 0
    this.#hasLost = false
    try {
      await this.#begin()
      // What happened between the two queues is in none.
      this.#notices.overflow('queue')
      await this.#work()
    } catch {
      // The folder is gone.
      if (!this.#stop.signal.aborted) this.#endOnMove()
    }
  }
}

/** Every folder on the way to a path, from the workspace on; none for the workspace itself. */
function foldersAbove(path: string): string[] {
  if (path === '') return []
  const names = path.split('/')
  return names.map((_, count) => names.slice(0, count).join('/'))
}

function byDepth(left: string, right: string): number {
  return left.split('/').length - right.split('/').length
}
