import { createStore, type Store } from '@sandwire/client'
import type { RestoredFiles, Sandbox, SavedState } from '../api/sandboxes.ts'
import { type StatusEvent, watchStatus } from '../api/versions.ts'
import type { Workbench } from '../state/workbench.ts'

/** What the page knows about saving in one sandbox. */
export interface FileStatus {
  readonly sandbox: string
  readonly saved: Omit<SavedState, 'restored'>
  readonly isRestoring: boolean
}

type Watch = (sandbox: string, onEvent: (event: StatusEvent) => void) => () => void

/** Follows whether the files of the selected sandbox are saved: from its events while it runs, else from the list. */
export class FileStatuses {
  readonly #watch: Watch
  readonly #onLost: (sandbox: Sandbox, restored: RestoredFiles) => void
  readonly #status = createStore<FileStatus | undefined>(undefined)
  #sandbox: Sandbox | undefined
  #stop: (() => void) | undefined
  /** Restores that the user was told about, by sandbox. */
  readonly #reportedMs = new Map<string, number>()

  /** `onLost` is called once for each sandbox that was lost and recreated. */
  constructor(onLost: (sandbox: Sandbox, restored: RestoredFiles) => void, watch: Watch = watchStatus) {
    this.#onLost = onLost
    this.#watch = watch
  }

  /** Undefined where files are not saved. */
  get status(): Store<FileStatus | undefined> {
    return this.#status
  }

  /** Called when the selection or the list has changed. */
  follow(sandbox: Sandbox | undefined): void {
    const isOther = sandbox?.id !== this.#sandbox?.id
    this.#sandbox = sandbox
    if (isOther || sandbox?.state !== 'running') this.#end()
    if (sandbox === undefined || sandbox.saved === null) {
      this.#status.set(undefined)
      return
    }
    const { restored, ...saved } = sandbox.saved
    if (restored !== null) this.#reportLost(sandbox, restored)
    if (this.#stop === undefined) this.#status.set({ sandbox: sandbox.id, saved, isRestoring: false })
    if (sandbox.state === 'running') this.#stop ??= this.#watch(sandbox.id, (event) => this.#receive(event))
  }

  #receive(event: StatusEvent): void {
    const sandbox = this.#sandbox
    const status = this.#status.get()
    if (sandbox === undefined || status === undefined) return
    switch (event.kind) {
      case 'state':
        this.#status.set({ ...status, saved: event.state })
        return
      case 'restoring':
        this.#status.set({ ...status, isRestoring: true })
        return
      case 'restored':
        this.#status.set({ ...status, isRestoring: false })
        this.#reportLost(sandbox, event.restored)
        return
      case 'ended':
        // The next list of sandboxes says whether it still runs.
        this.#end()
    }
  }

  #reportLost(sandbox: Sandbox, restored: RestoredFiles): void {
    if (restored.reason !== 'lost' || this.#reportedMs.get(sandbox.id) === restored.restoredMs) return
    this.#reportedMs.set(sandbox.id, restored.restoredMs)
    this.#onLost(sandbox, restored)
  }

  #end(): void {
    this.#stop?.()
    this.#stop = undefined
  }
}

/** Has the status follow the selected sandbox. */
export function followSelection(
  { current, sandboxes }: Pick<Workbench, 'current' | 'sandboxes'>,
  statuses: FileStatuses,
): void {
  const update = (): void => {
    const known = sandboxes.get()
    const id = current.get()
    statuses.follow(known.kind === 'ready' ? known.value.find((each) => each.id === id) : undefined)
  }
  current.subscribe(update)
  sandboxes.subscribe(update)
}
