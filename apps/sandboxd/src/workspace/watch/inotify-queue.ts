import { closeFd } from '../../processes/linux/libc.ts'
import type { AsUser } from '../../processes/tree/run-as.ts'
import { pathIn } from '../beneath/path.ts'
import { isHiddenName } from '../files/context.ts'
import { Inotify, type InotifyEvent } from './inotify.ts'

/** What happened, by path. */
export type QueueEvent =
  /** More than the kernel keeps. */
  | { readonly kind: 'lost' }
  /** A folder that is watched was moved or removed itself; without a path, one above them. */
  | { readonly kind: 'left'; readonly path: string | undefined }
  | { readonly kind: 'came' | 'went' | 'changed'; readonly path: string; readonly isFolder: boolean }

/** Folders that one queue of the kernel tells of, by their paths. */
export class WatchQueue {
  readonly #inotify: Inotify
  readonly #asUser: AsUser
  readonly #folders = new WatchedFolders()
  /** Watches on folders that only tell that they go. */
  readonly #above = new Set<number>()
  #isClosed = false

  private constructor(inotify: Inotify, asUser: AsUser) {
    this.#inotify = inotify
    this.#asUser = asUser
  }

  /** Undefined when the system has no more of them. */
  static open(asUser: AsUser): WatchQueue | undefined {
    const inotify = Inotify.open()
    return inotify === undefined ? undefined : new WatchQueue(inotify, asUser)
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

  /** Takes an open folder, watches what happens in it, and closes it. False when the system has no more watches. */
  add(path: string, folder: number): boolean {
    const watch = this.#watch(folder, 'contents')
    if (watch < 0) return false
    const stale = this.#folders.set(path, watch)
    if (stale !== undefined) this.#inotify.unwatch(stale)
    return true
  }

  /** The same for a folder above, of which only its going is told. */
  addAbove(folder: number): void {
    const watch = this.#watch(folder, 'itself')
    if (watch >= 0) this.#above.add(watch)
  }

  /** Ends the watches on a folder and on all below it. */
  forget(path: string): void {
    // The number of a queue that is closed may be somebody else's.
    if (this.#isClosed) return
    for (const watch of this.#folders.forgetBelow(path)) this.#inotify.unwatch(watch)
  }

  /** What has happened, without waiting; the rest in the next turn. */
  *take(): Generator<QueueEvent> {
    for (const event of this.#inotify.take()) {
      const told = this.#toPath(event)
      if (told !== undefined) yield told
      // Whoever was told may have closed it.
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
    if (folder !== undefined) return { kind: 'left', path: folder }
    return this.#above.has(event.watch) ? { kind: 'left', path: undefined } : undefined
  }
}

/** Which watch is on which folder: one each, and the last one told is right. */
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

  /** A folder that was moved keeps its watch, and a path may get another folder: then returns the watch that is not needed. */
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

  /** Forgets a folder and all below it; returns their watches. */
  forgetBelow(path: string): number[] {
    const prefix = `${path}/`
    const gone = [...this.#watches].filter(([other]) => other === path || other.startsWith(prefix))
    for (const [, watch] of gone) this.forget(watch)
    return gone.map(([, watch]) => watch)
  }
}
