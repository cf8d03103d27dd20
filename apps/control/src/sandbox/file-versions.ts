import { KeyedSerializer } from '@sandwire/async'
import { SandwireError } from '@sandwire/protocol'
import { z } from 'zod'
import type { Log } from '../log.ts'
import type { SandboxAddress, SandboxVersions, SaveOptions } from '../versions/sandbox-versions.ts'
import { IDLE, nextSyncMs, stepSync, type SyncEvent, type SyncState } from '../versions/sync-state.ts'
import type { Version, VersionContent, VersionStore } from '../versions/version-store.ts'
import type { Running } from './lifecycle.ts'
import { controlItself, type SandboxdClient } from './sandboxd-client.ts'

/** Longest wait for a change; sandboxd answers at once when one occurs. */
const WAIT_SECONDS = 20
/** While a save is pending, changes are polled this often. */
const PENDING_POLL_MS = 500
/** After the start: its first processes have the processor to themselves. */
const FIRST_LOOK_MS = 3_000
/** After a failed request to sandboxd. */
const RETRY_MS = 2_000
/** Where changes cannot be observed. */
const UNOBSERVED_SAVE_MS = 10_000
/** Between scans of all folders: inotify does not report stores into mapped memory. */
const FULL_SCAN_MS = 60_000
/** Scans of all folders take at most this share of the time. */
const FULL_SCAN_SHARE = 1 / 200

const changesBody = z.object({ changes: z.int().min(0).nullable(), head: z.string().nullable() })

/** What a user sees of saving. */
export interface SavedState {
  readonly state: SyncState['kind']
  /** When the newest version was saved; null: never. */
  readonly savedMs: number | null
  /** Code of the last failure, until a save succeeds. */
  readonly error: string | null
}

export interface FileVersionsDependencies {
  readonly store: VersionStore
  /** Undefined: files are not saved. */
  readonly versions: SandboxVersions | undefined
  /** A stopped sandbox of the provider has no files. */
  readonly losesFiles: boolean
  readonly sandboxd: (sandbox: string) => SandboxdClient
  /** The sandbox and its state while it runs. */
  readonly running: () => { readonly sandbox: string; readonly state: Running } | undefined
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly log: Log
  readonly mintRequestId: () => string
  /** Keeps the object alive until the work is done. */
  readonly hold: (work: Promise<unknown>) => void
  /** Called when what users see of saving has changed. */
  readonly onChange: () => Promise<void>
}

/** A sandbox that has started; `epoch` identifies the start. */
export interface StartedSandbox {
  readonly sandbox: string
  readonly address: string
  readonly epoch: string
}

/** Saves the files of a running sandbox whenever they have changed, and on request. */
export class FileVersions {
  readonly #deps: FileVersionsDependencies
  readonly #saves = new KeyedSerializer()
  #state: SyncState = IDLE
  #error: string | null = null
  #savesRunning = 0
  #watched: string | undefined
  #nextFullScanMs = 0
  /** The start whose sandboxd knows the newest version. */
  #adopted: string | undefined

  constructor(deps: FileVersionsDependencies) {
    this.#deps = deps
  }

  get isEnabled(): boolean {
    return this.#deps.versions !== undefined
  }

  get saved(): SavedState {
    const { store } = this.#deps
    return { state: this.#state.kind, savedMs: store.head?.createdMs ?? null, error: this.#error }
  }

  /** A save runs. */
  get isSaving(): boolean {
    return this.#savesRunning > 0
  }

  /** Watches the running sandbox for changes, unless it does so already. */
  watch(): void {
    const running = this.#deps.running()
    if (!this.isEnabled || running === undefined || this.#watched === running.state.epoch) return
    this.#watched = running.state.epoch
    this.#state = IDLE
    this.#deps.hold(this.#watch(running.state.epoch))
  }

  /** Saves now. Throws when that fails, and when the sandbox does not run. */
  async save(
    options: Omit<SaveOptions, 'requestId' | 'isFullScan'> & { readonly requestId?: string },
  ): Promise<Version> {
    const { versions, running, mintRequestId, nowMs } = this.#deps
    if (versions === undefined) throw notSaved()
    this.#savesRunning += 1
    const work = this.#saves.run('save', async () => {
      const target = running()
      if (target === undefined) throw new SandwireError('sandbox_stopped', 'The sandbox is not running')
      const { sandbox, state } = target
      const startedMs = nowMs()
      const isFullScan = options.pause !== 'periodic' || startedMs >= this.#nextFullScanMs
      if (this.#state.kind !== 'syncing') this.#apply({ type: 'flush' })
      // A sandbox runs only when it has its files.
      if (!this.#deps.store.isRestored(state.epoch)) this.#deps.store.setRestored(state.epoch)
      await this.#adopt({ sandbox, address: state.address }, state.epoch)
      try {
        const version = await versions.save(
          { sandbox, address: state.address, isCurrent: () => running()?.state.epoch === state.epoch },
          { requestId: mintRequestId(), isFullScan, ...options },
        )
        this.#error = null
        const tookMs = nowMs() - startedMs
        if (isFullScan) this.#nextFullScanMs = nowMs() + Math.max(FULL_SCAN_MS, tookMs / FULL_SCAN_SHARE)
        this.#apply({ type: 'saved', tookMs })
        if (version === undefined)
          throw new SandwireError('internal', 'Cannot save the files: nothing was saved')
        return version
      } catch (caught) {
        const { code, message } = SandwireError.from(caught)
        this.#error = code
        this.#apply({ type: 'failed' })
        this.#deps.log.warn('save_failed', { sandbox, code, cause: message })
        throw caught
      } finally {
        await this.#deps.onChange().catch(() => undefined)
      }
    })
    return work.finally(() => {
      this.#savesRunning -= 1
    })
  }

  /**
   * Saves before the sandbox stops. A failure prevents the stop where the files would be lost; elsewhere they stay on the disk
   * and are saved after the next start.
   */
  async saveBeforeStop(requestId: string): Promise<void> {
    const { losesFiles, running } = this.#deps
    if (!this.isEnabled || running() === undefined) return
    try {
      await this.save({ pause: 'stop', kind: 'automatic', requestId })
    } catch (error) {
      if (losesFiles) throw error
    }
  }

  /** Restores the files of a sandbox that has started and has no process yet. */
  async restoreAtStart(target: StartedSandbox, requestId: string): Promise<void> {
    const { store, versions, losesFiles, log, nowMs } = this.#deps
    const pending = store.pendingRestore
    if (!losesFiles && pending === undefined) return
    const version = pending ?? store.head
    if (version === undefined || store.isRestored(target.epoch)) return store.setRestored(target.epoch)
    if (versions === undefined) throw notSaved()
    await versions.restore(target, version, requestId)
    log.info('restored', { sandbox: target.sandbox, request_id: requestId })
    // One step: a crash before it repeats the restore, and a crash after it finds these files as the newest version.
    store.addRestored(version, nowMs())
    store.setRestored(target.epoch)
    store.setPendingRestore(undefined)
  }

  /** False for a start whose restore was interrupted: the sandbox runs and has only part of its files. */
  hasFiles(epoch: string): boolean {
    return !this.startReplacesFiles || this.#deps.store.isRestored(epoch)
  }

  /** The next start writes a version into the sandbox, so that what is on its disk need not be saved. */
  get startReplacesFiles(): boolean {
    const { store, losesFiles } = this.#deps
    return store.pendingRestore !== undefined || (losesFiles && store.head !== undefined)
  }

  /** Keeps the newest version until it is deleted. */
  keepNewest(): void {
    const { store, nowMs } = this.#deps
    if (store.head?.kind === 'automatic') store.addCheckpoint(store.head, undefined, nowMs())
  }

  list(): readonly Version[] {
    return this.#deps.store.list()
  }

  /** Throws `not_found`. */
  find(nameOrNumber: string): Version {
    const version = this.#deps.store.find(nameOrNumber)
    if (version === undefined) throw new SandwireError('not_found', 'No version has this name or number')
    return version
  }

  /** A version, by default the newest, with its segments. Throws `not_found`. */
  content(nameOrNumber: string | undefined): VersionContent {
    const { store } = this.#deps
    if (!this.isEnabled) throw notSaved()
    const version = nameOrNumber === undefined ? store.head : this.find(nameOrNumber)
    if (version === undefined) throw new SandwireError('not_found', 'No version of the files is saved yet')
    return store.content(version)
  }

  /** Keeps the segments of a version for a sandbox that is made from it. */
  addFork(nameOrNumber: string, fork: string): VersionContent {
    const { store, nowMs } = this.#deps
    if (!this.isEnabled) throw notSaved()
    return store.addFork(fork, this.find(nameOrNumber), nowMs())
  }

  /** Makes a version of another sandbox the files of this one, which has none yet. */
  adoptFork(content: VersionContent): void {
    const { store, nowMs } = this.#deps
    store.adoptFork(content, nowMs())
  }

  /** Throws `name_taken` when another version has the name. */
  checkName(name: string | undefined): void {
    if (!this.isEnabled) throw notSaved()
    if (name !== undefined && this.#deps.store.find(name) !== undefined)
      throw new SandwireError('name_taken', 'Another version of the sandbox has this name')
  }

  /** Deletes a version; the newest one stays, because it is the saved state of the files. */
  remove(nameOrNumber: string): void {
    const { store, nowMs } = this.#deps
    const { number } = this.find(nameOrNumber)
    if (number === store.head?.number)
      throw new SandwireError('conflict', 'Cannot delete the version: it is the newest')
    if (number === store.pendingRestore?.number)
      throw new SandwireError('conflict', 'Cannot delete the version: the next start restores it')
    store.remove(number)
    store.markUnused(nowMs())
  }

  /** The next start replaces the files by a version, and so does not need those on the disk. */
  get hasPendingRestore(): boolean {
    return this.#deps.store.pendingRestore !== undefined
  }

  /** Has the next start replace the files by a version. Throws `not_found` when it was deleted meanwhile. */
  setPendingRestore({ number }: Version): void {
    this.find(String(number))
    this.#deps.store.setPendingRestore(number)
  }

  async #watch(epoch: string): Promise<void> {
    let known: number | null | undefined
    let lastSaveMs = 0
    const isCurrent = (): boolean => this.#deps.running()?.state.epoch === epoch
    await this.#deps.sleep(FIRST_LOOK_MS)
    while (isCurrent()) {
      const { nowMs, sleep } = this.#deps
      const isPending = nextSyncMs(this.#state) !== undefined
      const changes = await this.#changes(known, isPending).catch(() => undefined)
      if (changes === undefined) {
        await sleep(RETRY_MS)
        continue
      }
      const isUnseenDue =
        changes === null ? nowMs() - lastSaveMs >= UNOBSERVED_SAVE_MS : nowMs() >= this.#nextFullScanMs
      // The first look counts as a change: files may have changed before.
      if (changes !== known || isUnseenDue) this.#apply({ type: 'changed' })
      known = changes
      if (this.#apply({ type: 'tick' })) {
        lastSaveMs = nowMs()
        await this.save({ pause: 'periodic', kind: 'automatic' }).catch(() => undefined)
      }
    }
    if (this.#watched === epoch) this.#watched = undefined
  }

  /** Number of changes in the sandbox; null where they cannot be observed. */
  async #changes(known: number | null | undefined, isPending: boolean): Promise<number | null> {
    const { running, sandboxd, sleep, mintRequestId } = this.#deps
    const target = running()
    if (target === undefined) throw new SandwireError('sandbox_stopped', 'The sandbox is not running')
    if (isPending) await sleep(PENDING_POLL_MS)
    const wait = isPending || known === undefined ? 0 : WAIT_SECONDS
    const query = known === undefined || known === null ? `wait=${wait}` : `known=${known}&wait=${wait}`
    const late = (): Error => new SandwireError('timed_out', 'The sandbox does not respond in time')
    const response = await sandboxd(target.sandbox).request(
      target.state.address,
      controlItself(mintRequestId()),
      { method: 'GET', path: `/versions/changes?${query}`, deadline: { ms: (wait + 15) * 1000, late } },
    )
    if (known === null) await sleep(UNOBSERVED_SAVE_MS)
    return changesBody.parse(response).changes
  }

  /** A sandboxd that was started again does not know what is saved, and would store everything. */
  async #adopt(target: SandboxAddress, epoch: string): Promise<void> {
    const { store, versions, log, sandboxd, mintRequestId } = this.#deps
    const { head } = store
    if (versions === undefined || head === undefined || this.#adopted === epoch) return
    try {
      const caller = controlItself(mintRequestId())
      const request = { method: 'GET', path: '/versions/changes' } as const
      const response = await sandboxd(target.sandbox).request(target.address, caller, request)
      if (changesBody.parse(response).head !== head.save) await versions.adopt(target, head, mintRequestId())
      this.#adopted = epoch
    } catch (caught) {
      // The next save then stores everything.
      const { code, message } = SandwireError.from(caught)
      log.warn('adopt_failed', { sandbox: target.sandbox, code, cause: message })
    }
  }

  /** Returns true when a save must begin. */
  #apply(event: SyncEvent): boolean {
    const { state, saves } = stepSync(this.#state, event, this.#deps.nowMs())
    this.#state = state
    return saves
  }
}

function notSaved(): SandwireError {
  return new SandwireError('not_found', 'Cannot use versions: this server has no store for them')
}
