import { closeFd } from '../../processes/libc.ts'
import type { Readiness } from '../../processes/readiness.ts'
import type { AsUser } from '../../processes/run-as.ts'
import type { Files } from '../files.ts'
import { isHiddenName } from '../files/hidden-name.ts'
import { pathIn } from '../path-in.ts'
import { Inotify } from './inotify.ts'
import type { InotifyEvent } from './inotify-event.ts'
import type { Notices } from './notices.ts'
import { WatchedFolders } from './watched-folders.ts'

/** How the kernel calls a file that is being written before it has a name. */
const NAMELESS = /(^|\/)#\d+$/

/** Beneath it nobody has a project. */
const MAX_DEPTH = 200
/** Names looked at when folders are looked for. */
const MAX_NODES = 2_000_000
const WALK_MS = 60_000
/** From one loss of events to the next look at all folders, so that a flood is not answered with another one. */
const AGAIN_MS = 1_000

export interface FolderWatchOptions {
  /** From the workspace; empty for the workspace itself. */
  readonly path: string
  readonly isRecursive: boolean
  readonly maxFolders: number
}

export interface FolderWatchDependencies {
  readonly files: Pick<Files, 'openFolder' | 'stat' | 'walk'>
  readonly asUser: AsUser
  readonly readiness: Readiness
}

/** A folder whose contents have to be found, because it is new or because events were lost. */
interface Task {
  readonly path: string
  /** What is in it came with it, and is told. */
  readonly isNew: boolean
}

/**
 * Watches a folder, or a whole tree, by the kernel's inotify. Folders are watched before they are looked into, so that what comes
 * into a new one is told either by the look or by the kernel. Paths are what they were when events happened; a folder that is
 * watched, or one above it, ends the watching when it goes away.
 */
export class FolderWatch {
  readonly #options: FolderWatchOptions
  readonly #deps: FolderWatchDependencies
  readonly #notices: Notices
  readonly #stop = new AbortController()
  #inotify: Inotify
  #folders = new WatchedFolders()
  /** Watches on the folders above, which only tell that they go. */
  #above = new Set<number>()
  readonly #tasks: Task[] = []
  #isWorking = false
  #hasLost = false

  private constructor(
    inotify: Inotify,
    notices: Notices,
    options: FolderWatchOptions,
    deps: FolderWatchDependencies,
  ) {
    this.#inotify = inotify
    this.#notices = notices
    this.#options = options
    this.#deps = deps
  }

  /** Undefined when the system has no more queues; rejects when the folder cannot be opened. */
  static async open(
    notices: Notices,
    options: FolderWatchOptions,
    deps: FolderWatchDependencies,
  ): Promise<FolderWatch | undefined> {
    const inotify = Inotify.open()
    if (inotify === undefined) return undefined
    const watch = new FolderWatch(inotify, notices, options, deps)
    try {
      await watch.#begin()
    } catch (error) {
      watch.close()
      throw error
    }
    void watch.#work()
    return watch
  }

  /** Ends everything; what happens from now on is told to nobody. */
  close(): void {
    if (this.#stop.signal.aborted) return
    this.#stop.abort()
    this.#release()
    this.#notices.end()
  }

  #release(): void {
    this.#deps.readiness.unwatch(this.#inotify.fd)
    this.#inotify.close()
  }

  async #begin(): Promise<void> {
    this.#deps.readiness.watch(this.#inotify.fd, () => this.#read())
    const { path, isRecursive } = this.#options
    await this.#watchAbove(path)
    const folder = await this.#deps.files.openFolder(path === '' ? '.' : path)
    this.#watchOpen(path, folder)
    if (isRecursive) this.#tasks.push({ path, isNew: false })
  }

  async #watchAbove(path: string): Promise<void> {
    const names = path.split('/').slice(0, -1)
    for (let count = path === '' ? 1 : 0; count <= names.length; count += 1) {
      const above = names.slice(0, count).join('/')
      const folder = await this.#deps.files.openFolder(above === '' ? '.' : above)
      const watch = this.#addWatch(folder, 'itself')
      if (watch >= 0) this.#above.add(watch)
    }
  }

  /** Takes an open folder, and closes it. */
  #addWatch(folder: number, what: 'contents' | 'itself'): number {
    try {
      // The queue may be closed, and its number somebody else's.
      if (this.#stop.signal.aborted) return -1
      return this.#deps.asUser(() => this.#inotify.watch(folder, what))
    } finally {
      closeFd(folder)
    }
  }

  #watchOpen(path: string, folder: number): boolean {
    const watch = this.#addWatch(folder, 'contents')
    // Refused by the user's rights, or because the system has no more watches.
    if (watch < 0) this.#notices.overflow('folders')
    if (watch < 0) return false
    const stale = this.#folders.set(path, watch)
    if (stale !== undefined) this.#inotify.unwatch(stale)
    return true
  }

  /** False when the folder is gone, not for this user, or one too many. */
  async #watchFolder(path: string): Promise<boolean> {
    if (this.#folders.size >= this.#options.maxFolders) {
      this.#notices.overflow('folders')
      return false
    }
    let folder: number
    try {
      folder = await this.#deps.files.openFolder(path)
    } catch {
      // Gone meanwhile, which is told by its own event, or not to be read, which everybody who looks finds out.
      return false
    }
    return this.#watchOpen(path, folder)
  }

  /** One task after the other, until none is left; then everything is watched. */
  async #work(): Promise<void> {
    if (this.#isWorking) return
    this.#isWorking = true
    for (;;) {
      const task = this.#tasks.shift()
      if (task === undefined || this.#stop.signal.aborted) break
      await this.#cover(task)
    }
    this.#isWorking = false
    if (!this.#stop.signal.aborted) this.#notices.ready(this.#folders.size)
  }

  /** Watches all folders below one. Looks again until there is nothing new: a folder may come while others are looked into. */
  async #cover({ path, isNew }: Task): Promise<void> {
    if (isNew && !(await this.#watchFolder(path))) return
    const told = new Set<string>()
    try {
      while ((await this.#look(path, isNew ? told : undefined)) > 0);
    } catch {
      // Gone while it was looked into. Its watch may by now be on a folder that is elsewhere.
      this.#forget(path)
    }
  }

  /** Number of folders that were not watched yet, and are now. */
  async #look(path: string, told: Set<string> | undefined): Promise<number> {
    let added = 0
    const limits = { maxNodes: MAX_NODES, maxDepth: MAX_DEPTH, timeMs: WALK_MS }
    const reached = (): void => this.#notices.overflow('folders')
    const walk = this.#deps.files.walk(path === '' ? '.' : path, { ...limits, reached }, this.#stop.signal)
    for await (const batch of walk) {
      for (const entry of batch) {
        if (isHiddenName(entry.name)) continue
        const found = pathIn(path, entry.path)
        if (told !== undefined && !told.has(found)) {
          told.add(found)
          this.#notices.add({ path: found, kind: 'created' })
        }
        const isUnknown = entry.kind === 'folder' && !this.#folders.has(found)
        if (isUnknown && (await this.#watchFolder(found))) added += 1
      }
    }
    return added
  }

  #read(): void {
    for (const event of this.#inotify.take()) {
      this.#handle(event)
      if (this.#stop.signal.aborted) return
    }
    if (this.#tasks.length > 0) void this.#work()
  }

  #handle(event: InotifyEvent): void {
    if (event.kind === 'lost') return this.#lose()
    const folder = this.#folders.pathOf(event.watch)
    if (!('name' in event)) {
      if (folder === this.#options.path || this.#above.has(event.watch)) this.#leave()
      else if (event.kind === 'unwatched') this.#folders.forget(event.watch)
      return
    }
    if (folder !== undefined && !isHiddenName(event.name)) this.#tell(pathIn(folder, event.name), event)
  }

  #tell(path: string, { kind, isFolder }: Extract<InotifyEvent, { name: string }>): void {
    switch (kind) {
      case 'came':
        this.#notices.add({ path, kind: 'created' })
        if (isFolder && this.#options.isRecursive) this.#enqueue(path)
        break
      case 'went':
        this.#notices.add({ path, kind: 'removed' })
        if (isFolder) this.#forget(path)
        break
      case 'changed':
        if (NAMELESS.test(path)) void this.#tellIfThere(path)
        else this.#notices.add({ path, kind: 'changed' })
    }
  }

  async #tellIfThere(path: string): Promise<void> {
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

  #forget(path: string): void {
    for (const watch of this.#folders.forgetBelow(path)) this.#inotify.unwatch(watch)
  }

  /** The folder is not where it was: what is told of it would be wrong. */
  #leave(): void {
    const { path } = this.#options
    this.#notices.add({ path: path === '' ? '.' : path, kind: 'removed' })
    this.close()
  }

  /** Events were lost, and with them what is known of folders: after a pause it begins anew. */
  #lose(): void {
    this.#notices.overflow('queue')
    if (this.#hasLost) return
    this.#hasLost = true
    const timer = setTimeout(() => void this.#restart(), AGAIN_MS)
    this.#stop.signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
  }

  async #restart(): Promise<void> {
    const inotify = Inotify.open()
    if (inotify === undefined) return this.close()
    this.#release()
    this.#inotify = inotify
    this.#folders = new WatchedFolders()
    this.#above = new Set()
    this.#tasks.length = 0
    this.#hasLost = false
    try {
      await this.#begin()
      // What happened between the two queues is in none.
      this.#notices.overflow('queue')
      await this.#work()
    } catch {
      // The folder is gone.
      if (!this.#stop.signal.aborted) this.#leave()
    }
  }
}
