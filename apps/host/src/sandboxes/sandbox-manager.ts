import path from 'node:path'
import { KeyedSerializer, raceTimeout } from '@sandwire/async'
import { explainStartFailure, StartFailure, type SandboxStatus, type StartSpec } from '@sandwire/internal-api'
import { SandwireError, type StopReason } from '@sandwire/protocol'
import type { Admission, DiskGuard } from '../disk/disk-guard.ts'
import { FullDisk, isDiskFull, MissingFile } from '../data/folder-problem.ts'
import { DataLock } from '../data/lock.ts'
import { isRunning } from '../data/process-identity.ts'
import type { Isolation, IsolationSettings } from '../isolation/isolation.ts'
import { type SlotPlan, Slots } from '../slots/slots.ts'
import {
  type AliveState,
  readState,
  reasonInState,
  replaceFile,
  type SandboxFiles,
  type SupervisorState,
  writeState,
} from '../supervisor/sandbox-files.ts'
import {
  FILES_MISSING,
  LAST_SAVE_MS,
  READY_MS,
  STOP_GRACE_MS,
  type SupervisorSpec,
  UNCLAIMED_MS,
} from '../supervisor/spec.ts'
import { pollUntil } from '../poll.ts'
import { isAlive, statusFrom } from './sandbox-status.ts'
import { readTail, SandboxStore } from './sandbox-store.ts'
import { requestSupervisor, type SupervisorRequest, spawnSupervisor } from './supervisor-client.ts'

/** Manages the sandboxes of this machine. Methods may be called concurrently. */
export interface SandboxManager {
  /** The isolation of sandboxes. */
  readonly isolation: 'bubblewrap' | 'none'
  /** Starts a sandbox unless it runs; concurrent calls for one id share one start. Throws `sandbox_failed`. */
  start(spec: StartSpec): Promise<SandboxStatus>
  status(id: string): Promise<SandboxStatus>
  list(): Promise<readonly SandboxStatus[]>
  /** Ids of the sandboxes whose supervisor runs and has started them. */
  runningIds(): readonly string[]
  /** Stops a sandbox; its files stay. The reason is logged and, unless requested by a user, part of its state. */
  stop(id: string, reason?: StopReason): Promise<SandboxStatus>
  /** Stops a sandbox and removes everything; a missing one is no error. */
  destroy(id: string): Promise<void>
  /** Closes every connection to a sandbox; its processes continue. */
  disconnect(id: string): Promise<void>
  /** The last whole lines of a sandbox's log, at most `maxBytes`. */
  readLog(id: string, maxBytes: number): Promise<string>
  /** Finds and claims sandboxes that outlived the last host. */
  adopt(): Promise<readonly SandboxStatus[]>
  /** Renews the claim on a sandbox; its supervisor stops it after ten minutes without one. */
  claim(id: string): Promise<void>
  /** Releases the sandboxes; with `stop`, stops them first. */
  close(options: { readonly stop: boolean }): Promise<void>
}

/** Added to sandboxd's ready timeout: start of the supervisor, and disk preparation. */
const START_MARGIN_MS = 15_000
/** Added to sandboxd's stop timeout: release of mounts and cgroups. */
const STOP_MARGIN_MS = 5_000
/** Time for a killed supervisor and its sandbox to disappear. */
const KILL_MS = 5_000

/** Time after which an unresponsive process counts as slow rather than dying. */
const DYING_MS = 1_000

export interface SandboxManagerOptions {
  /** One folder with state and log for each sandbox. */
  readonly sandboxesFolder: string
  /** Sockets of supervisors. Must be short, because socket addresses are. */
  readonly controlFolder: string
  readonly isolation: Isolation
  /** Passed to supervisors, to create the same isolation. */
  readonly settings: IsolationSettings
  /** Command of a supervisor; the path of its spec file is appended. */
  readonly supervisor: readonly string[]
  /** Slots of sandboxes. */
  readonly slots: SlotPlan
  /** Folder of the gates to the credential gateway; absent: sandboxes have none. */
  readonly gates?: string
  /** Closes every connection to sandboxes, except those whose sandboxd is one of these processes. */
  readonly closeConnections: (exceptPids: ReadonlySet<number>) => void
  /** Admits sandboxes to the data disk; absent: every sandbox. */
  readonly disk?: Pick<DiskGuard, 'admit'>
  /** Rebuilds the programs that sandboxes run if they are damaged; true when it did. */
  readonly repairPrograms?: () => Promise<boolean>
  /** Control saves the files of sandboxes. */
  readonly savesFiles?: boolean
  readonly unclaimedMs?: number
  readonly readyMs?: number
}

function signal(state: AliveState, name: 'SIGTERM' | 'SIGKILL'): void {
  if (!isRunning(state)) return
  try {
    process.kill(state.pid, name)
  } catch {
    // Ended meanwhile.
  }
}

/** Waits until a supervisor answers or is gone. A killed one disappears within a moment; a slow one does not. */
async function waitForAnswer(state: AliveState, controlSocket: string): Promise<void> {
  if (!(await requestSupervisor(controlSocket, 'GET /status')))
    await pollUntil(() => !isRunning(state), DYING_MS)
}

/** Manages sandboxes through supervisors, separate processes that outlive the host. */
class SupervisedSandboxManager implements SandboxManager {
  readonly isolation: SandboxManager['isolation']
  readonly #options: SandboxManagerOptions
  readonly #store: SandboxStore
  readonly #slots: Slots
  readonly #serializer = new KeyedSerializer<SandboxStatus>()

  constructor(options: SandboxManagerOptions) {
    this.#options = options
    this.isolation = options.isolation.kind
    this.#store = new SandboxStore(options.sandboxesFolder, options.controlFolder)
    this.#slots = new Slots(options.slots)
  }

  start(spec: StartSpec): Promise<SandboxStatus> {
    return this.#serializer.runShared(spec.id, () => this.#start(spec))
  }

  async status(id: string): Promise<SandboxStatus> {
    const status = await this.#readStatus(id)
    if (!this.#hasLostSupervisor(id)) return status
    await this.#serializer.run(id, () => this.#cleanUp(id))
    return this.#readStatus(id)
  }

  runningIds(): readonly string[] {
    return this.#store.list().filter((id) => {
      const state = readState(this.#store.filesOf(id).state)
      return state?.state === 'running' && isRunning(state)
    })
  }

  list(): Promise<readonly SandboxStatus[]> {
    return Promise.all(this.#store.list().map((id) => this.status(id)))
  }

  stop(id: string, reason: StopReason = 'requested'): Promise<SandboxStatus> {
    return this.#serializer.run(id, async () => {
      if (this.#store.has(id)) await this.#stopSupervisor(id, reason)
      return this.#readStatus(id)
    })
  }

  destroy(id: string): Promise<void> {
    return this.#serializer.run(id, async () => {
      if (this.#store.has(id)) await this.#stopSupervisor(id, 'removed')
      await this.#options.isolation.remove(id)
      this.#slots.release(id)
      this.#store.remove(id)
    })
  }

  /** Closes all connections that are not known to be another sandbox's: a sandbox can hide its identity, but not fake another. */
  async disconnect(id: string): Promise<void> {
    if (!isAlive(readState(this.#store.filesOf(id).state))) return
    const others = this.#store.list().filter((each) => each !== id)
    const exceptPids = others.flatMap((each) => {
      const state = readState(this.#store.filesOf(each).state)
      return state?.state === 'running' && isRunning(state) ? [state.daemonPid] : []
    })
    this.#options.closeConnections(new Set(exceptPids))
  }

  async claim(id: string): Promise<void> {
    await this.#request(id, 'POST /claim')
  }

  async readLog(id: string, maxBytes: number): Promise<string> {
    return readTail(this.#store.filesOf(id).log, maxBytes)
  }

  async adopt(): Promise<readonly SandboxStatus[]> {
    // Their supervisors use sockets and files at paths that this host does not have.
    const moved = this.#store.list().filter((id) => this.#isElsewhere(id))
    await Promise.allSettled(moved.map((id) => this.stop(id, 'shutting_down')))
    const running = (await this.list()).filter(({ state }) => state === 'running')
    await Promise.allSettled(running.map(({ id }) => this.claim(id)))
    return running
  }

  /** True for a sandbox that was started before the data folder was renamed. */
  #isElsewhere(id: string): boolean {
    const state = readState(this.#store.filesOf(id).state)
    return isAlive(state) && state.controlSocket !== this.#store.controlSocketOf(id)
  }

  async close({ stop }: { readonly stop: boolean }): Promise<void> {
    if (!stop) return
    const results = await Promise.allSettled(this.#store.list().map((id) => this.stop(id, 'shutting_down')))
    this.#slots.removeIfEmpty()
    for (const result of results) if (result.status === 'rejected') throw SandwireError.from(result.reason)
  }

  async #start(spec: StartSpec): Promise<SandboxStatus> {
    try {
      return await this.#tryStart(spec)
    } catch (error) {
      if ((await this.#options.repairPrograms?.()) !== true) throw error
      return this.#tryStart(spec)
    }
  }

  async #tryStart(spec: StartSpec): Promise<SandboxStatus> {
    const files = this.#store.make(spec.id)
    const deadlineMs = performance.now() + this.#startMs
    for (;;) {
      const joined = await this.#awaitOtherStart(spec.id, files)
      if (joined !== undefined) return joined
      await this.#cleanUp(spec.id)
      const spawned = await this.#spawn(spec, files, deadlineMs)
      if (spawned !== undefined) return spawned
      if (performance.now() > deadlineMs) throw failed(spec.name, 'late')
    }
  }

  /** Waits for a start that another host began; returns the sandbox if it runs. */
  async #awaitOtherStart(id: string, files: SandboxFiles): Promise<SandboxStatus | undefined> {
    const isSettled = (): boolean => {
      const state = readState(files.state)
      return state?.state === 'running' || !isAlive(state)
    }
    await pollUntil(isSettled, this.#startMs)
    const state = readState(files.state)
    if (!isAlive(state) || state.state !== 'running') return undefined
    await waitForAnswer(state, state.controlSocket)
    const status = statusFrom(id, readState(files.state))
    return status.state === 'running' ? status : undefined
  }

  /** Starts a supervisor; undefined when another supervisor holds the sandbox. */
  async #spawn(spec: StartSpec, files: SandboxFiles, deadlineMs: number): Promise<SandboxStatus | undefined> {
    using admission = this.#options.disk?.admit(spec)
    replaceFile(files.spec, JSON.stringify(this.#specFor(spec, files, admission)))
    const spawned = spawnSupervisor(this.#options.supervisor, files)
    const announced = await raceTimeout(spawned.announcement, deadlineMs - performance.now(), 'late')
    if (announced === 'late') {
      await this.#stopSupervisor(spec.id)
      spawned.kill()
      throw failed(spec.name, 'late')
    }
    switch (announced?.type) {
      case 'running':
        return statusFrom(spec.id, readState(files.state))
      case 'held':
        return undefined
      case 'failed':
        if (announced.reason === FILES_MISSING) throw this.#missing(spec)
        throw this.#failed(spec.name, announced.reason)
      case undefined:
        throw this.#failed(spec.name, 'supervisor_lost')
    }
  }

  /** Stops a supervisor: by request, then SIGTERM, then SIGKILL. */
  async #stopSupervisor(id: string, reason: StopReason = 'requested'): Promise<void> {
    const { state: file } = this.#store.filesOf(id)
    const state = readState(file)
    if (!isAlive(state)) return this.#cleanUp(id)
    const isGone = (): boolean => !isRunning(state)
    if (!(await requestSupervisor(state.controlSocket, `POST /stop?reason=${reason}`)))
      signal(state, 'SIGTERM')
    const savesMs = reason === 'shutting_down' && this.#options.savesFiles === true ? LAST_SAVE_MS : 0
    if (!(await pollUntil(isGone, STOP_GRACE_MS + savesMs + STOP_MARGIN_MS))) {
      signal(state, 'SIGKILL')
      await pollUntil(isGone, KILL_MS)
    }
    await this.#cleanUp(id, { id, state: 'stopped', ...reasonInState(reason) })
  }

  async #readStatus(id: string): Promise<SandboxStatus> {
    if (!this.#store.has(id)) return { id, state: 'absent' }
    const { state: file } = this.#store.filesOf(id)
    const state = readState(file)
    if (!isAlive(state) || state.state !== 'running') return statusFrom(id, state)
    // The state may change while the supervisor answers.
    await waitForAnswer(state, this.#store.controlSocketOf(id))
    return statusFrom(id, readState(file))
  }

  /** True when the supervisor died without recording a stop. */
  #hasLostSupervisor(id: string): boolean {
    const state = readState(this.#store.filesOf(id).state)
    return state !== undefined && state.state !== 'stopped' && !isRunning(state)
  }

  /** Cleans up after a supervisor that died, and records the stop in its place. */
  async #cleanUp(id: string, stopped?: SupervisorState): Promise<void> {
    const files = this.#store.filesOf(id)
    if (!this.#hasLostSupervisor(id)) return
    const outcome = DataLock.take(files.lock)
    // A new supervisor holds the sandbox and cleans up itself.
    if (outcome.kind === 'held') return
    try {
      const status = statusFrom(id, readState(files.state))
      await this.#options.isolation.sweep(id)
      this.#slots.release(id)
      this.#store.removeSocket(id)
      if (status.state === 'stopped') this.#recordStopped(files, stopped ?? status)
    } finally {
      outcome.lock.release()
    }
  }

  /** On a full disk the old state remains; its process is gone, which means the same. */
  #recordStopped(files: SandboxFiles, state: SupervisorState): void {
    try {
      writeState(files.state, state)
    } catch (error) {
      if (!this.#isFull) throw error
    }
  }

  #failed(name: string, reason: string): SandwireError {
    const { sandboxesFolder } = this.#options
    return this.#isFull
      ? failed(name, 'data_disk_full', new FullDisk(path.dirname(sandboxesFolder)))
      : failed(name, reason)
  }

  #missing({ id, name }: StartSpec): SandwireError {
    const { isolation, settings } = this.#options
    const file = path.relative(settings.dataFolder, isolation.filesOf(id))
    return new SandwireError(
      'files_missing',
      `Cannot start sandbox "${name}": "${file}" is missing or damaged`,
      {
        cause: new MissingFile(file),
      },
    )
  }

  get #isFull(): boolean {
    return isDiskFull(this.#options.sandboxesFolder)
  }

  async #request(id: string, request: SupervisorRequest): Promise<void> {
    const state = readState(this.#store.filesOf(id).state)
    if (!isAlive(state)) return
    if (await requestSupervisor(state.controlSocket, request)) return
    if (isRunning(state))
      throw new SandwireError(
        'sandbox_unreachable',
        'Cannot reach the sandbox: its supervisor does not answer',
      )
  }

  get #startMs(): number {
    return (this.#options.readyMs ?? READY_MS) + START_MARGIN_MS
  }

  #specFor(start: StartSpec, files: SandboxFiles, admission: Admission | undefined): SupervisorSpec {
    const {
      isolation,
      settings,
      slots,
      gates,
      savesFiles = false,
      unclaimedMs = UNCLAIMED_MS,
      readyMs = READY_MS,
    } = this.#options
    return {
      start,
      isolation: {
        kind: isolation.kind,
        ...settings,
        ...(start.account !== undefined && { account: start.account }),
      },
      folder: files.folder,
      controlSocket: this.#store.controlSocketOf(start.id),
      slots,
      ...(gates !== undefined && { gates }),
      savesFiles,
      unclaimedMs,
      readyMs,
      ...(admission?.growthBytes !== undefined && { growthBytes: admission.growthBytes }),
    }
  }
}

/** Creates the manager of a data folder's sandboxes. */
export function createSandboxManager(options: SandboxManagerOptions): SandboxManager {
  return new SupervisedSandboxManager(options)
}

/** The error for a start that failed for this reason. Paths and causes are in the log of the sandbox, not in the message. */
function failed(name: string, reason: string, cause: Error = new StartFailure(reason)): SandwireError {
  return new SandwireError(
    'sandbox_failed',
    `Cannot start sandbox "${name}": ${explainStartFailure(reason)}`,
    {
      cause,
    },
  )
}
