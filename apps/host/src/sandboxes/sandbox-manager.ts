import { KeyedSerializer, raceTimeout } from '@sandwire/async'
import { DISK_FULL, type SandboxStatus, type StartSpec } from '@sandwire/internal-api'
import { SandwireError, type StopReason } from '@sandwire/protocol'
import { isDiskFull } from '../data/folder-problem.ts'
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
import { READY_MS, STOP_GRACE_MS, type SupervisorSpec, UNCLAIMED_MS } from '../supervisor/spec.ts'
import { pollUntil } from '../poll.ts'
import { isAlive, statusFrom } from './sandbox-status.ts'
import { readTail, SandboxStore } from './sandbox-store.ts'
import { requestSupervisor, type Order, spawnSupervisor } from './supervisor-client.ts'

/** Makes and keeps the sandboxes of this machine. Every method may be called at any time, by several at once. */
export interface SandboxManager {
  /** How sandboxes are isolated from this machine. */
  readonly isolation: 'bubblewrap' | 'none'
  /** Starts the sandbox unless it runs; concurrent calls for one id share one start. Throws `sandbox_failed`. */
  start(spec: StartSpec): Promise<SandboxStatus>
  status(id: string): Promise<SandboxStatus>
  list(): Promise<readonly SandboxStatus[]>
  /** Ends every process of the sandbox; its files stay. Its log says why, and so does its state, unless it was stopRequested for. */
  stop(id: string, reason?: StopReason): Promise<SandboxStatus>
  /** Ends and removes everything of it. Nothing to do is no error. */
  destroy(id: string): Promise<void>
  /** Cuts every connection into the sandbox; its processes run on. */
  disconnect(id: string): Promise<void>
  /** The last bytes of the sandbox's log, cut at a line. */
  readLog(id: string, maxBytes: number): Promise<string>
  /** Finds the sandboxes that outlived the last host and tells them that they are wanted. */
  adopt(): Promise<readonly SandboxStatus[]>
  /** Says that a sandbox is still wanted; its supervisor ends it when nobody does for ten minutes. */
  claim(id: string): Promise<void>
  /** Lets go of the sandboxes. With `stop` it ends them first. */
  close(options: { readonly stop: boolean }): Promise<void>
}

/** Beyond what a supervisor gives sandboxd: its own start, and preparing a disk. */
const START_MARGIN_MS = 15_000
/** Beyond what a supervisor gives sandboxd: letting go of mounts and control groups. */
const STOP_MARGIN_MS = 5_000
/** Time the kernel has to end a process that was killed, and a sandbox whose supervisor was. */
const KILL_MS = 5_000

/** Time a process that does not answer has to be gone before it is taken for a slow one. */
const DYING_MS = 1_000

export interface SandboxManagerOptions {
  /** State and logs of sandboxes, one folder each. */
  readonly sandboxesFolder: string
  /** Sockets of supervisors. Short, because socket addresses are. */
  readonly controlFolder: string
  readonly isolation: Isolation
  /** What a supervisor makes the same isolation from. */
  readonly settings: IsolationSettings
  /** How a supervisor is started; the file that tells it everything is added. */
  readonly supervisor: readonly string[]
  /** The ways into sandboxes. */
  readonly slots: SlotPlan
  /** Cuts every connection into sandboxes but those that these processes listen for. */
  readonly closeConnections: (exceptPids: ReadonlySet<number>) => void
  readonly unclaimedMs?: number
  readonly readyMs?: number
}

function signal(state: AliveState, name: 'SIGTERM' | 'SIGKILL'): void {
  if (!isRunning(state)) return
  try {
    process.kill(state.pid, name)
  } catch {
    // It ended in between.
  }
}

/** Keeps sandboxes through supervisors, which are processes of their own and live on without this one. */
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
    const status = await this.#look(id)
    if (!this.#hasLostSupervisor(id)) return status
    await this.#serializer.run(id, () => this.#sweep(id))
    return this.#look(id)
  }

  list(): Promise<readonly SandboxStatus[]> {
    return Promise.all(this.#store.list().map((id) => this.status(id)))
  }

  stop(id: string, reason: StopReason = 'requested'): Promise<SandboxStatus> {
    return this.#serializer.run(id, async () => {
      if (this.#store.has(id)) await this.#end(id, reason)
      return this.#look(id)
    })
  }

  destroy(id: string): Promise<void> {
    return this.#serializer.run(id, async () => {
      if (this.#store.has(id)) await this.#end(id, 'removed')
      await this.#options.isolation.remove(id)
      this.#slots.release(id)
      this.#store.remove(id)
    })
  }

  /** What is not known to be another sandbox's is cut: a sandbox can hide who it is, but not pass for another. */
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
    await this.#order(id, 'POST /claim')
  }

  async readLog(id: string, maxBytes: number): Promise<string> {
    return readTail(this.#store.filesOf(id).log, maxBytes)
  }

  async adopt(): Promise<readonly SandboxStatus[]> {
    const running = (await this.list()).filter(({ state }) => state === 'running')
    await Promise.allSettled(running.map(({ id }) => this.claim(id)))
    return running
  }

  async close({ stop }: { readonly stop: boolean }): Promise<void> {
    if (!stop) return
    const results = await Promise.allSettled(this.#store.list().map((id) => this.stop(id, 'shutting_down')))
    this.#slots.removeIfEmpty()
    for (const result of results) if (result.status === 'rejected') throw SandwireError.from(result.reason)
  }

  async #start(spec: StartSpec): Promise<SandboxStatus> {
    const files = this.#store.make(spec.id)
    const deadlineMs = performance.now() + this.#startMs
    for (;;) {
      const joined = await this.#join(spec.id, files)
      if (joined !== undefined) return joined
      await this.#sweep(spec.id)
      const spawned = await this.#spawn(spec, files, deadlineMs)
      if (spawned !== undefined) return spawned
      if (performance.now() > deadlineMs) throw failed(spec.name, 'late')
    }
  }

  /** The sandbox that runs, when what another host began ends with one. */
  async #join(id: string, files: SandboxFiles): Promise<SandboxStatus | undefined> {
    const isSettled = (): boolean => {
      const state = readState(files.state)
      return state?.state === 'running' || !isAlive(state)
    }
    await pollUntil(isSettled, this.#startMs)
    const state = readState(files.state)
    if (!isAlive(state) || state.state !== 'running') return undefined
    // One that was killed is there for a moment longer, and one that is merely slow for more than that.
    if (!(await requestSupervisor(state.controlSocket, 'GET /status')))
      await pollUntil(() => !isRunning(state), DYING_MS)
    const status = statusFrom(id, readState(files.state))
    return status.state === 'running' ? status : undefined
  }

  /** Starts a supervisor; undefined when another one has the sandbox. */
  async #spawn(spec: StartSpec, files: SandboxFiles, deadlineMs: number): Promise<SandboxStatus | undefined> {
    replaceFile(files.spec, JSON.stringify(this.#specFor(spec, files)))
    const spawned = spawnSupervisor(this.#options.supervisor, files)
    const said = await raceTimeout(spawned.announcement, deadlineMs - performance.now(), 'late')
    if (said === 'late') {
      await this.#end(spec.id)
      spawned.kill()
      throw failed(spec.name, 'late')
    }
    switch (said?.type) {
      case 'running':
        return statusFrom(spec.id, readState(files.state))
      case 'held':
        return undefined
      case 'failed':
        throw this.#failed(spec.name, said.reason)
      case undefined:
        throw this.#failed(spec.name, 'supervisor_lost')
    }
  }

  /** Ends what runs, however it takes it. */
  async #end(id: string, reason: StopReason = 'requested'): Promise<void> {
    const { state: file } = this.#store.filesOf(id)
    const state = readState(file)
    if (!isAlive(state)) return this.#sweep(id)
    const isGone = (): boolean => !isRunning(state)
    if (!(await requestSupervisor(state.controlSocket, `POST /stop?reason=${reason}`)))
      signal(state, 'SIGTERM')
    if (!(await pollUntil(isGone, STOP_GRACE_MS + STOP_MARGIN_MS))) {
      signal(state, 'SIGKILL')
      await pollUntil(isGone, KILL_MS)
    }
    await this.#sweep(id, { id, state: 'stopped', ...reasonInState(reason) })
  }

  async #look(id: string): Promise<SandboxStatus> {
    if (!this.#store.has(id)) return { id, state: 'absent' }
    const { state: file } = this.#store.filesOf(id)
    const status = statusFrom(id, readState(file))
    if (status.state !== 'running') return status
    // One that ends while it is stopRequested has a newer word to say.
    await requestSupervisor(this.#store.controlSocketOf(id), 'GET /status')
    return statusFrom(id, readState(file))
  }

  /** Whether the supervisor of a sandbox died without leaving word. */
  #hasLostSupervisor(id: string): boolean {
    const state = readState(this.#store.filesOf(id).state)
    return state !== undefined && state.state !== 'stopped' && !isRunning(state)
  }

  /** Removes what a supervisor that died left behind, and says in its place that the sandbox has stopped. */
  async #sweep(id: string, stopped?: SupervisorState): Promise<void> {
    const files = this.#store.filesOf(id)
    if (!this.#hasLostSupervisor(id)) return
    const outcome = DataLock.take(files.lock)
    // A new supervisor has it, and makes way for itself.
    if (outcome.kind === 'held') return
    try {
      const status = statusFrom(id, readState(files.state))
      await this.#options.isolation.sweep(id)
      this.#slots.release(id)
      this.#store.removeSocket(id)
      if (status.state === 'stopped') this.#note(files, stopped ?? status)
    } finally {
      outcome.lock.release()
    }
  }

  /** On a full disk the old word stays: that of a process that is gone, which says as much. */
  #note(files: SandboxFiles, state: SupervisorState): void {
    try {
      writeState(files.state, state)
    } catch (error) {
      if (!this.#isFull) throw error
    }
  }

  #failed(name: string, reason: string): SandwireError {
    return failed(name, this.#isFull ? 'data_disk_full' : reason)
  }

  get #isFull(): boolean {
    return isDiskFull(this.#options.sandboxesFolder)
  }

  async #order(id: string, order: Order): Promise<void> {
    const state = readState(this.#store.filesOf(id).state)
    if (!isAlive(state)) return
    if (await requestSupervisor(state.controlSocket, order)) return
    if (isRunning(state))
      throw new SandwireError(
        'sandbox_unreachable',
        'Cannot reach the sandbox: its supervisor does not answer',
      )
  }

  get #startMs(): number {
    return (this.#options.readyMs ?? READY_MS) + START_MARGIN_MS
  }

  #specFor(start: StartSpec, files: SandboxFiles): SupervisorSpec {
    const { isolation, settings, slots, unclaimedMs = UNCLAIMED_MS, readyMs = READY_MS } = this.#options
    return {
      start,
      isolation: { kind: isolation.kind, ...settings },
      folder: files.folder,
      controlSocket: this.#store.controlSocketOf(start.id),
      slots,
      unclaimedMs,
      readyMs,
    }
  }
}

/** Makes the manager of a data folder's sandboxes. */
export function createSandboxManager(options: SandboxManagerOptions): SandboxManager {
  return new SupervisedSandboxManager(options)
}

/** What is told of a start that failed. Paths and causes are in the log of the sandbox, not here. */
const EXPLANATIONS: Readonly<Record<string, string>> = {
  bad_spec: 'its supervisor is of another version',
  data_disk_full: DISK_FULL,
  disk_full: 'its disk is full',
  egress_failed: 'its proxy could not be opened',
  late: 'it took too long',
  launch_failed: 'it could not be launched',
  slot_failed: 'there is no way into it',
  not_ready: 'sandboxd was not ready in time',
  oom: 'it ran out of memory',
  prepare_failed: 'its files could not be prepared',
  stopped: 'it was stopped meanwhile',
  supervisor_failed: 'its supervisor broke',
  supervisor_lost: 'its supervisor died',
}

/** The error for a start that failed for this reason. */
export function failed(name: string, reason: string): SandwireError {
  const explanation = Object.hasOwn(EXPLANATIONS, reason)
    ? EXPLANATIONS[reason]
    : `sandboxd ended with "${reason}" before it was ready`
  return new SandwireError('sandbox_failed', `Cannot start sandbox "${name}": ${explanation}`)
}
