import { closeFd } from '../../processes/linux/libc.ts'
import type { AsUser } from '../../processes/run-as.ts'
import { pathIn } from '../beneath/path.ts'
import { isHiddenName } from '../files/context.ts'
import { Inotify, type InotifyEvent } from './inotify.ts'

/** An event with its path. */
export type QueueEvent =
  /** The kernel's queue overflowed. */
  | { readonly kind: 'lost' }
  /** A watched folder was moved or removed; without a path, one of its ancestors. */
  | { readonly kind: 'gone'; readonly path: string | undefined }
  | { readonly kind: 'created' | 'removed' | 'changed'; readonly path: string; readonly isFolder: boolean }

/** The folders of one inotify instance, by path. */
export class InotifyQueue {
  readonly #inotify: Inotify
  readonly #asUser: AsUser
  readonly #folders = new WatchedFolders()
  /** Watches on ancestors, of which only moves and removals matter. */
  readonly #ancestors = new Set<number>()
  #isClosed = false

  private constructor(inotify: Inotify, asUser: AsUser) {
    this.#inotify = inotify
    this.#asUser = asUser
  }

  /** Undefined when the system has none left. */
  static open(asUser: AsUser): InotifyQueue | undefined {
    const inotify = Inotify.open()
    return inotify === undefined ? undefined : new InotifyQueue(inotify, asUser)
  }

  get fd(): number {
    return this.#inotify.fd
  }

  get size(): number {
    return this.#folders.size
  }

  has(path: string): boolean {
    return this.#folders.has(path)
  }

  /** Takes ownership of an open folder and watches it. Returns false when the system has no watches left. */
  add(path: string, folder: number): boolean {
    const watch = this.#watch(folder, 'contents')
    if (watch < 0) return false
    const stale = this.#folders.set(path, watch)
    if (stale !== undefined) this.#inotify.unwatch(stale)
    return true
  }

  /** Watches an ancestor for moves and removal only. */
  addAncestor(folder: number): void {
    const watch = this.#watch(folder, 'itself')
    if (watch >= 0) this.#ancestors.add(watch)
  }

  /** Removes the watches of a folder and all below it. */
  forget(path: string): void {
    // The descriptor of a closed instance may have been reused.
    if (this.#isClosed) return
    for (const watch of this.#folders.forgetBelow(path)) this.#inotify.unwatch(watch)
  }

  /** Pending events, without blocking; the rest in the next turn. */
  *take(): Generator<QueueEvent> {
    for (const event of this.#inotify.take()) {
      const found = this.#toPath(event)
      if (found !== undefined) yield found
      // The receiver of an event may have closed the queue.
      if (this.#isClosed) return
    }
  }

  close(): void {
    this.#isClosed = true
    this.#inotify.close()
  }

  #watch(folder: number, what: 'contents' | 'itself'): number {
    try {
      return this.#isClosed ? -1 : this.#asUser(() => this.#inotify.watch(folder, what))
    } finally {
      closeFd(folder)
    }
  }

  #toPath(event: InotifyEvent): QueueEvent | undefined {
    if (event.kind === 'lost') return event
    const folder = this.#folders.pathOf(event.watch)
    if ('name' in event) {
      if (folder === undefined || isHiddenName(event.name)) return undefined
      return { kind: event.kind, path: pathIn(folder, event.name), isFolder: event.isFolder }
    }
    if (event.kind === 'unwatched') this.#folders.forget(event.watch)
    if (folder !== undefined) return { kind: 'gone', path: folder }
    return this.#ancestors.has(event.watch) ? { kind: 'gone', path: undefined } : undefined
  }
}

/** Maps watches to folders, one to one; the latest assignment wins. */
export class WatchedFolders {
  readonly #paths = new Map<number, string>()
  readonly #watches = new Map<string, number>()

  get size(): number {
    return this.#paths.size
  }

  has(path: string): boolean {
    return this.#watches.has(path)
  }

  pathOf(watch: number): string | undefined {
    return this.#paths.get(watch)
  }

  /** Assigns a watch to a path. A moved folder keeps its watch. Returns the watch that the path had before, if another. */
  set(path: string, watch: number): number | undefined {
    const before = this.#watches.get(path)
    const moved = this.#paths.get(watch)
    if (moved !== undefined) this.#watches.delete(moved)
    if (before !== undefined) this.#paths.delete(before)
    this.#paths.set(watch, path)
    this.#watches.set(path, watch)
    return before === watch ? undefined : before
  }

  forget(watch: number): void {
    const path = this.#paths.get(watch)
    this.#paths.delete(watch)
    if (path !== undefined && this.#watches.get(path) === watch) this.#watches.delete(path)
  }

  /** Removes a folder and all below it; returns their watches. */
  forgetBelow(path: string): number[] {
    const prefix = `${path}/`
    const gone = [...this.#watches].filter(([other]) => other === path || other.startsWith(prefix))
    for (const [, watch] of gone) this.forget(watch)
    return gone.map(([, watch]) => watch)
  }
}
