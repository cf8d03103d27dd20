import { type WatchEvent, watchFiles } from '../api/workspace.ts'

type Tell = (event: WatchEvent) => void

interface Watch {
  readonly listeners: Set<Tell>
  readonly stop: () => void
}

/** One workspace watch per sandbox, shared by all subscribers of the page. */
export class WorkspaceWatch {
  readonly #watches = new Map<string, Watch>()

  /** Reports changes in a workspace until the returned function is called. */
  subscribe(sandbox: string, tell: Tell): () => void {
    let watch = this.#watches.get(sandbox)
    if (watch === undefined) {
      const listeners = new Set<Tell>()
      watch = {
        listeners,
        stop: watchFiles(sandbox, (event) => {
          for (const listener of Array.from(listeners)) listener(event)
        }),
      }
      this.#watches.set(sandbox, watch)
    }
    watch.listeners.add(tell)
    return () => this.#leave(sandbox, tell)
  }

  #leave(sandbox: string, tell: Tell): void {
    const watch = this.#watches.get(sandbox)
    watch?.listeners.delete(tell)
    if (watch === undefined || watch.listeners.size > 0) return
    watch.stop()
    this.#watches.delete(sandbox)
  }
}
