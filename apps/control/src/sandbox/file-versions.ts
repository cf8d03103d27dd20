import { KeyedSerializer } from '@sandwire/async'
import { SandwireError } from '@sandwire/protocol'
import { z } from 'zod'
import type { Log } from '../log.ts'
import type { SandboxAddress, SandboxVersions, SaveOptions } from '../versions/sandbox-versions.ts'
import type { RetentionSettings } from '../versions/retention.ts'
import { IDLE, nextSyncMs, stepSync, type SyncEvent, type SyncState } from '../versions/sync-state.ts'
import type { VersionMetrics } from '../versions/version-metrics.ts'
import type {
  ListedVersion,
  RestoredFiles,
  Version,
  VersionContent,
  VersionList,
  VersionStore,
} from '../versions/version-store.ts'
import type { HeldVersions } from '../versions/held-versions.ts'
import type { Running } from './lifecycle.ts'
import { notSaved, restoreFiles, type StartedSandbox } from './restore-files.ts'
import { controlItself, type SandboxdClient } from './sandboxd-client.ts'
import type { StatusEvent, StatusEvents } from './status-events.ts'

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
const changesBody = z.object({
  changes: z.int().min(0).nullable(),
  head: z.string().nullable(),
  /** Absent from an older sandboxd. */
  isEnding: z.boolean().default(false),
})
type Changes = z.infer<typeof changesBody>

/** What a user sees of saving. */
export interface SavedState {
  readonly state: SyncState['kind']
  /** When the newest version was saved; null: never. */
  readonly savedMs: number | null
  /** Code of the last failure, until a save succeeds. */
  readonly error: string | null
  /** What the running sandbox was restored from; null: it found its files when it started. */
  readonly restored: RestoredFiles | null
}

export interface FileVersionsDependencies {
  readonly store: VersionStore
  /** Undefined: files are not saved. */
  readonly versions: SandboxVersions | undefined
  /** A stopped sandbox of the provider has no files. */
  readonly losesFiles: boolean
  /** Name of the provider: another one does not have the files. */
  readonly provider: string
  readonly events: Pick<StatusEvents, 'emit'>
  readonly metrics: Pick<VersionMetrics, 'saved' | 'failed' | 'restored' | 'update'>
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

/** Saves the files of a running sandbox whenever they have changed, and on request. */
export class FileVersions {
  readonly #deps: FileVersionsDependencies
  readonly #saves = new KeyedSerializer()
  #state: SyncState = IDLE
  #error: string | null = null
  #savesRunning = 0
  /** Since when files are not saved. */
  #unsavedMs: number | undefined
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
    return { ...this.#sync, restored: this.#restored ?? null }
  }

  get #sync(): Omit<SavedState, 'restored'> {
    const { store, running } = this.#deps
    // A change that was seen during the last save is part of it, or gone with the sandbox.
    const isOver = running() === undefined && this.#error === null && !this.isSaving
    const state = isOver ? 'idle' : this.#state.kind
    return { state, savedMs: store.head?.createdMs ?? null, error: this.#error }
  }

  /** A save runs. */
  get isSaving(): boolean {
    return this.#savesRunning > 0
  }

  get #restored(): RestoredFiles | undefined {
    const { store, running } = this.#deps
    const last = store.lastStart
    return last !== undefined && last.epoch === running()?.state.epoch ? last.restored : undefined
  }

  /** What a client that begins to listen must know. */
  get events(): readonly StatusEvent[] {
    if (!this.isEnabled) throw notSaved()
    const restored = this.#restored
    return [
      { event: 'sync_state', data: this.#sync },
      ...(restored === undefined ? [] : [{ event: 'restored', data: restored } as const]),
    ]
  }

  /** Watches the running sandbox for changes, unless it does so already. */
  watch(): void {
    const running = this.#deps.running()
    if (!this.isEnabled || running === undefined || this.#watched === running.state.epoch) return
    this.#watched = running.state.epoch
    this.#state = IDLE
    this.#deps.hold(this.#watch(running.sandbox, running.state.epoch))
  }

  /** Saves now. Throws when that fails, and when the sandbox does not run. */
  async save(
    options: Omit<SaveOptions, 'requestId' | 'isFullScan'> & { readonly requestId?: string },
  ): Promise<Version> {
    const { store, versions, running, mintRequestId, nowMs, events, metrics } = this.#deps
    if (versions === undefined) throw notSaved()
    if (options.kind === 'checkpoint') store.checkCheckpoints()
    this.#savesRunning += 1
    const work = this.#saves.run('save', async () => {
      const target = running()
      if (target === undefined) throw new SandwireError('sandbox_stopped', 'The sandbox is not running')
      const { sandbox, state } = target
      const startedMs = nowMs()
      const isFullScan = options.pause !== 'periodic' || startedMs >= this.#nextFullScanMs
      if (this.#state.kind !== 'syncing') this.#apply({ type: 'flush' })
      // A sandbox runs only when it has its files.
      if (store.lastStart?.epoch !== state.epoch) store.setStarted(state.epoch, this.#deps.provider)
      await this.#adopt({ sandbox, address: state.address }, state.epoch)
      try {
        const version = await versions.save(
          { sandbox, address: state.address, isCurrent: () => running()?.state.epoch === state.epoch },
          { requestId: mintRequestId(), isFullScan, ...options },
        )
        if (version === undefined)
          throw new SandwireError('internal', 'Cannot save the files: nothing was saved')
        const hadError = this.#error !== null
        this.#error = null
        store.setSavedAtEnd(state.epoch, options.pause === 'stop')
        const tookMs = nowMs() - startedMs
        if (isFullScan) this.#nextFullScanMs = nowMs() + Math.max(FULL_SCAN_MS, tookMs / FULL_SCAN_SHARE)
        this.#apply({ type: 'saved', tookMs })
        metrics.saved(version.createdMs >= startedMs ? store.bytesOf(version.save) : 0)
        if (hadError) events.emit({ event: 'sync_recovered', data: { savedMs: version.createdMs } })
        return version
      } catch (caught) {
        const { code, message } = SandwireError.from(caught)
        this.#error = code
        metrics.failed(code)
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
    const { store, losesFiles, provider, events } = this.#deps
    const { lastStart: last } = store
    const pending = store.pending.next
    if (last?.epoch === target.epoch) return
    const version = pending?.version ?? (losesFiles ? store.head : undefined)
    if (version === undefined) {
      store.setStarted(target.epoch, provider)
      events.emit({ event: 'restore_skipped', data: {} })
      return
    }
    const isComplete = last === undefined || (last.isSaved && version.number === store.head?.number)
    const reason = pending?.isRequested === true ? 'requested' : isComplete ? 'started' : 'lost'
    await restoreFiles(this.#deps, target, { version, rest: pending?.rest, reason, requestId })
  }

  /**
   * Has the start replace the files by the newest version if they are with another provider. Throws `files_missing` when they
   * were not saved there.
   */
  prepareStart(hasFiles: boolean): void {
    const { store, provider } = this.#deps
    const { lastStart: last } = store
    if (last === undefined || last.provider === provider || !hasFiles || this.hasPendingRestore) return
    if (!this.recover())
      throw new SandwireError(
        'files_missing',
        `Cannot start the sandbox: its files were not saved and are with the provider "${last.provider}". Start the server with that provider`,
      )
  }

  /** Has the next start restore the newest version because the files are missing; false when there is none. */
  recover(): boolean {
    const { store, versions } = this.#deps
    if (versions === undefined || store.head === undefined) return false
    if (store.pending.next?.rest === undefined) store.pending.set(store.head.number, false)
    else store.pending.setRestMissing()
    return true
  }

  /** False for a start whose restore was interrupted: the sandbox runs and has only part of its files. */
  hasFiles(epoch: string): boolean {
    return !this.startReplacesFiles || this.#deps.store.lastStart?.epoch === epoch
  }

  /** The next start writes a version into the sandbox, so that what is on its disk need not be saved. */
  get startReplacesFiles(): boolean {
    const { store, losesFiles } = this.#deps
    return store.pending.next !== undefined || (losesFiles && store.head !== undefined)
  }

  /** Keeps the newest version until it is deleted. */
  keepNewest(): void {
    const { store } = this.#deps
    if (store.head !== undefined) store.keep(store.head)
  }

  /** What users see of a version. */
  describeOne({ save, manifests: _manifests, segments: _segments, ...version }: Version): ListedVersion {
    const { store } = this.#deps
    return { ...version, addedBytes: store.bytesOf(save), isHeld: store.held.has(version.number) }
  }

  /** All versions, and which are kept. */
  describe(): VersionList {
    const { store } = this.#deps
    return { versions: store.describe(), retention: store.retention, storedBytes: store.storedBytes }
  }

  /** Sets which versions of this sandbox are kept. */
  setRetention(settings: RetentionSettings): void {
    const { store, nowMs } = this.#deps
    if (!this.isEnabled) throw notSaved()
    store.setRetention('sandbox', settings)
    store.prune(nowMs())
    store.markUnused(nowMs())
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

  /** Adds versions that are in the store and not in the list, as after the database was restored from a backup. */
  async rebuild(sandbox: string): Promise<void> {
    const { versions } = this.#deps
    if (versions === undefined) throw notSaved()
    await this.#saves.run('save', () => versions.rebuild(sandbox))
  }

  /** Keeps the segments of a version for a sandbox that is made from it. */
  addFork(sandbox: string, nameOrNumber: string, fork: string): Promise<VersionContent> {
    const { versions } = this.#deps
    if (versions === undefined) throw notSaved()
    return versions.addFork(sandbox, fork, this.find(nameOrNumber))
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
    const pending = store.pending.next
    if (number === pending?.version.number || number === pending?.rest?.version.number)
      throw new SandwireError('conflict', 'Cannot delete the version: the next start restores it')
    store.remove(number)
    store.markUnused(nowMs())
  }

  /** The next start replaces all files by a version, and so does not need those on the disk. */
  get hasPendingRestore(): boolean {
    const pending = this.#deps.store.pending.next
    return pending !== undefined && pending.rest?.isMissing !== false
  }

  /** Has the next start replace the files by a version. Throws `not_found` when it was deleted meanwhile. */
  setPendingRestore({ number }: Version): void {
    this.find(String(number))
    this.#deps.store.pending.set(number, true)
  }

  /** A pending restore has failed: has the next start restore this version instead. */
  replacePendingRestore({ number }: Version): void {
    const { pending } = this.#deps.store
    if (pending.next !== undefined) pending.set(number, true)
  }

  /** Has the next start replace the workspace by that of a version; the other folders stay as they are in the newest. */
  setPendingWorkspace({ number }: Version): void {
    const { store, losesFiles } = this.#deps
    this.find(String(number))
    const newest = store.head?.number ?? number
    store.pending.setWorkspace(number, { number: newest, isMissing: losesFiles })
  }

  /** Saves the files, and keeps the version for a conversation or run, instead of those that it kept and does not name. */
  async hold(
    holder: string,
    { kept, pause }: { readonly kept: readonly number[]; readonly pause: 'periodic' | 'checkpoint' },
  ): Promise<Version> {
    const version = await this.save({ pause, kind: 'automatic' })
    this.#deps.store.held.set(holder, [...kept, version.number])
    return version
  }

  get held(): Pick<HeldVersions, 'lastRestore' | 'beginRestore' | 'endRestore'> {
    return this.#deps.store.held
  }

  /** Gives up the versions that a conversation or run kept. */
  release(holder: string): void {
    const { store, nowMs } = this.#deps
    store.held.set(holder, [])
    store.prune(nowMs())
    store.markUnused(nowMs())
  }

  async #watch(sandbox: string, epoch: string): Promise<void> {
    const { metrics } = this.#deps
    let known: number | null | undefined
    let lastSaveMs = 0
    let isSavedAtEnd = false
    const isCurrent = (): boolean => this.#deps.running()?.state.epoch === epoch
    await this.#deps.sleep(FIRST_LOOK_MS)
    while (isCurrent()) {
      const { nowMs, sleep } = this.#deps
      const isPending = nextSyncMs(this.#state) !== undefined
      const polled = await this.#changes(known, isPending).catch(() => undefined)
      if (polled === undefined) {
        await sleep(RETRY_MS)
        continue
      }
      const { changes } = polled
      if (polled.isEnding) {
        // All its processes have ended, and sandboxd waits for this save.
        if (isSavedAtEnd) await sleep(PENDING_POLL_MS)
        else isSavedAtEnd = await this.#saveAtEnd()
        continue
      }
      const isUnseenDue =
        changes === null ? nowMs() - lastSaveMs >= UNOBSERVED_SAVE_MS : nowMs() >= this.#nextFullScanMs
      // The first look counts as a change: files may have changed before.
      if (changes !== known) this.#apply({ type: 'changed' })
      else if (isUnseenDue) this.#apply({ type: 'unknown' })
      known = changes
      if (this.#apply({ type: 'tick' })) {
        lastSaveMs = nowMs()
        await this.save({ pause: 'periodic', kind: 'automatic' }).catch(() => undefined)
      }
    }
    if (this.#watched !== epoch) return
    this.#watched = undefined
    if (this.#error === null) this.#apply({ type: 'reset' })
    metrics.update(sandbox, undefined)
  }

  /** Returns true when everything is saved. */
  async #saveAtEnd(): Promise<boolean> {
    try {
      await this.save({ pause: 'stop', kind: 'automatic' })
      return true
    } catch {
      // The caller tries again until the sandbox is gone.
      await this.#deps.sleep(RETRY_MS)
      return false
    }
  }

  /** Number of changes in the sandbox; null where they cannot be observed. */
  async #changes(known: number | null | undefined, isPending: boolean): Promise<Changes> {
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
      {
        method: 'GET',
        path: `/versions/changes?${query}`,
        isPoll: wait > 0,
        deadline: { ms: (wait + 15) * 1000, late },
      },
    )
    const parsed = changesBody.parse(response)
    if (known === null && !parsed.isEnding) await sleep(UNOBSERVED_SAVE_MS)
    return parsed
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
    const { store, nowMs, events, metrics, running } = this.#deps
    const before = this.#state.kind
    const { state, saves } = stepSync(this.#state, event, nowMs())
    this.#state = state
    if (state.kind === before) return saves
    if (before === 'idle') this.#unsavedMs = nowMs()
    if (state.kind === 'idle') this.#unsavedMs = undefined
    const sandbox = running()?.sandbox
    if (sandbox !== undefined)
      metrics.update(sandbox, { storedBytes: store.storedBytes, unsavedMs: this.#unsavedMs })
    events.emit({ event: 'sync_state', data: this.#sync })
    return saves
  }
}
