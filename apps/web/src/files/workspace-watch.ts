import { type WatchEvent, watchFiles } from '../api/workspace.ts'

type Listener = (event: WatchEvent) => void

interface Watch {
  readonly listeners: Set<Listener>
  readonly stop: () => void
}

/** One workspace watch per sandbox, shared by all subscribers of the page. */
export class WorkspaceWatch {
  readonly #watches = new Map<string, Watch>()

  /** Reports changes in a workspace until the returned function is called. */
  subscribe(sandbox: string, onEvent: Listener): () => void {
    let watch = this.#watches.get(sandbox)
    if (watch === undefined) {
      const listeners = new Set<Listener>()
      watch = {
        listeners,
        stop: watchFiles(sandbox, (event) => {
          for (const listener of Array.from(listeners)) listener(event)
        }),
      }
      this.#watches.set(sandbox, watch)
    }
    watch.listeners.add(onEvent)
    return () => this.#unsubscribe(sandbox, onEvent)
  }

  #unsubscribe(sandbox: string, onEvent: Listener): void {
    const watch = this.#watches.get(sandbox)
    watch?.listeners.delete(onEvent)
    if (watch === undefined || watch.listeners.size > 0) return
    watch.stop()
    this.#watches.delete(sandbox)
  }
}
