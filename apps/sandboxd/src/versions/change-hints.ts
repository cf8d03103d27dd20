import { parentOf } from '@sandwire/version-format'
import type { Inotify } from '../workspace/watch/inotify.ts'

/** Hinted folders; with more, scanning all of them is cheaper. */
const MAX_HINTS = 1_000

/**
 * Which folders have changed, by inotify. A hint makes the next save quick; it never replaces a scan: inotify does not see stores
 * into mapped memory, and its queue can overflow.
 */
export class ChangeHints {
  readonly #inotify: Inotify | undefined
  readonly #paths = new Map<number, string>()
  readonly #watches = new Map<string, number>()
  readonly #hints = new Set<string>()
  /** Events were lost, folders moved, or not every folder is watched. */
  #isIncomplete = true
  #events = 0

  constructor(inotify: Inotify | undefined) {
    this.#inotify = inotify
  }

  /** Called for every folder that is scanned. */
  watch(fd: number, path: string): void {
    if (this.#inotify === undefined || this.#watches.has(path)) return
    const watch = this.#inotify.watch(fd, 'contents')
    if (watch < 0) {
      this.#isIncomplete = true
      return
    }
    this.#forget(watch)
    this.#watches.set(path, watch)
    this.#paths.set(watch, path)
  }

  /** Reads pending events. Returns how many there were since the start, or undefined when changes cannot be observed. */
  poll(): number | undefined {
    for (const event of this.#inotify?.take() ?? []) {
      this.#events += 1
      if (event.kind === 'lost') {
        this.#isIncomplete = true
        continue
      }
      const path = this.#paths.get(event.watch)
      if (event.kind === 'gone' || event.kind === 'unwatched') {
        this.#forget(event.watch)
        continue
      }
      // The paths of everything below a folder that moves are no longer right.
      if (event.kind === 'removed' && event.isFolder) this.#isIncomplete = true
      if (path === undefined) this.#isIncomplete = true
      else this.#add(path)
    }
    return this.#inotify === undefined ? undefined : this.#events
  }

  /** The hinted folders, each after the one above it, or undefined when all must be scanned. Starts over. */
  take(): readonly string[] | undefined {
    this.poll()
    const isComplete = this.#inotify !== undefined && !this.#isIncomplete && this.#hints.size <= MAX_HINTS
    const hints = isComplete ? [...this.#hints].sort() : undefined
    if (hints === undefined) this.#unwatchAll()
    this.#hints.clear()
    this.#isIncomplete = false
    return hints
  }

  /** The save that took the hints failed: everything is scanned next time. */
  invalidate(): void {
    this.#isIncomplete = true
    this.#events += 1
  }

  #add(path: string): void {
    if (this.#hints.size > MAX_HINTS) return
    this.#hints.add(path)
    // A changed folder has a new time, which the folder above lists.
    const above = parentOf(path)
    if (above !== undefined && above !== '') this.#hints.add(above)
  }

  #forget(watch: number): void {
    const path = this.#paths.get(watch)
    if (path !== undefined && this.#watches.get(path) === watch) this.#watches.delete(path)
    this.#paths.delete(watch)
  }

  /** Paths may be wrong after a move; the scan that follows watches every folder again, under its present path. */
  #unwatchAll(): void {
    this.#paths.clear()
    this.#watches.clear()
  }
}
