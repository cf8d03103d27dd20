import { Database } from 'bun:sqlite'
import { DEFAULT_SANDBOX_LIMITS } from '@sandwire/internal-api'
import { NO_CEILING_SETTINGS } from '@sandwire/operator-settings'
import { SandwireError } from '@sandwire/protocol'
import { Random } from '@sandwire/testing'
import { resolveCeilings } from '../../../src/ceilings/ceilings.ts'
import { createLog } from '../../../src/log.ts'
import { Metrics } from '../../../src/metrics.ts'
import { FileVersions } from '../../../src/sandbox/file-versions.ts'
import { StatusEvents } from '../../../src/sandbox/status-events.ts'
import { VersionMetrics } from '../../../src/versions/version-metrics.ts'
import { SandboxLifecycle } from '../../../src/sandbox/lifecycle.ts'
import { restoreVersion, restoreWorkspace } from '../../../src/sandbox/restore-version.ts'
import { SandboxdClient } from '../../../src/sandbox/sandboxd-client.ts'
import { SandboxStore } from '../../../src/sandbox/store.ts'
import { Garbage } from '../../../src/versions/garbage.ts'
import { SandboxVersions } from '../../../src/versions/sandbox-versions.ts'
import { storeUnavailable } from '../../../src/versions/segment-store.ts'
import { sqlOf } from '../bun-sql.ts'
import { openStoreModel } from './store-model.ts'
import { type Files, isEqual, joinRoots, SandboxModel } from './sandbox-model.ts'

const ID = '0'.repeat(32)
const HOUR_MS = 60 * 60 * 1000
/** Steps with faults, and steps without in which everything must become true. */
const STEPS = 220
const QUIET_STEPS = 3_000

/** A call of control that waits for the simulator. */
interface Call {
  readonly name: string
  readonly effect: () => unknown
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

interface Timer {
  readonly atMs: number
  readonly fire: () => void
}

/** One life of the sandbox's object: what is in memory is lost when it ends. */
interface Control {
  readonly lifecycle: SandboxLifecycle
  readonly files: FileVersions
  readonly garbage: Garbage
}

const LOG = createLog(
  () => undefined,
  () => 0,
)

/**
 * Runs the real lifecycle, versions and sync state of one sandbox against a model of the sandbox and of the store, in virtual
 * time. Calls are answered in random order, fail before or after they took effect, and control ends at any of them. Changes of
 * its database that followed its last call may be lost then, as a Durable Object's are.
 */
class VersionsSimulation {
  readonly #random: Random
  readonly #database = new Database(':memory:')
  readonly #store: SandboxStore
  readonly #box: SandboxModel
  readonly #objects = new Map<string, Uint8Array<ArrayBuffer>>()
  /** The version of the files before each restore of the workspace; the last one is kept. */
  #presents: number[] = []
  /** Checkpoints that users were told of, with their files. */
  readonly #promised = new Map<string, Files>()
  #control: Control
  #calls: Call[] = []
  #timers: Timer[] = []
  /** Part of the object's storage. */
  #alarmMs: number | undefined
  #durableAlarmMs: number | undefined
  #nowMs = 1_000
  #minted = 0
  /** The platform repeats an alarm during which the object ended. */
  #isInAlarm = false
  #isFaulty = true
  #epoch = ''
  readonly #trace: string[] = []

  constructor(seed: number) {
    this.#random = new Random(seed)
    this.#store = new SandboxStore(sqlOf(this.#database))
    this.#box = new SandboxModel(this.#random.next() < 0.5 ? 'nothing' : 'files', {
      call: (name, effect) => this.#call(name, effect),
      sleep: (ms) => this.#sleep(ms),
    })
    this.#control = this.#open()
    this.#store.insert({
      id: ID,
      owner: 'owner',
      name: 'box',
      settings: {
        network: { policy: 'none', allow: [] },
        limits: DEFAULT_SANDBOX_LIMITS,
        env: {},
        sleepAfterMs: null,
      },
      createdMs: 0,
      lastActivityMs: 0,
      state: { kind: 'stopped' },
    })
    this.#database.run('SAVEPOINT durable')
  }

  async run(): Promise<void> {
    try {
      for (let step = 0; step < STEPS; step += 1) {
        this.#act()
        await this.#settle()
        this.#check()
      }
      await this.#recover()
    } catch (error) {
      throw new Error(`Seed ${this.#random.seed}, after:\n  ${this.#trace.slice(-40).join('\n  ')}`, {
        cause: error,
      })
    }
  }

  /** Faults have stopped: what users were told of exists, and the newest version is what the sandbox has. */
  async #recover(): Promise<void> {
    this.#isFaulty = false
    let isStarting = false
    // Again when a request that was queued before stops it.
    const start = async (): Promise<void> => {
      isStarting = true
      try {
        await this.#control.lifecycle.startObserved('end')
      } catch (error) {
        this.#note(`last start: ${SandwireError.from(error).code}`)
        await this.#sleep(1_000)
      }
      isStarting = false
    }
    const isRunning = (): boolean => this.#store.read()?.state.kind === 'running'
    const isDone = (): boolean => isRunning() && this.#box.sandboxd !== undefined && this.#isSaved()
    for (let step = 0; step < QUIET_STEPS && !(isDone() && this.#calls.length === 0); step += 1) {
      if (!isRunning() && !isStarting) void start()
      this.#advance()
      await this.#settle()
      this.#check()
    }
    if (!isDone()) throw new Error(`The files were not saved: ${this.#control.files.saved.state}`)
    const present = this.#presents.at(-1)
    if (present !== undefined && this.#store.versions.find(String(present)) === undefined)
      throw new Error(`Version ${present}, to undo a restore, is not kept`)
    for (const [name, files] of this.#promised)
      if (!isEqual(this.#restored(name), files)) throw new Error(`Checkpoint ${name} is not as it was`)
  }

  #isSaved(): boolean {
    const { head } = this.#store.versions
    const saved = head === undefined ? undefined : this.#box.snapshots.get(head.save)
    return (
      this.#control.files.saved.state === 'idle' && saved !== undefined && isEqual(saved, this.#box.files)
    )
  }

  #restored(name: string): Files | undefined {
    const version = this.#store.versions.find(name)
    return version === undefined ? undefined : this.#box.snapshots.get(version.save)
  }

  /** What must be true at any moment. */
  #check(): void {
    const { state: sync, error } = this.#control.files.saved
    if (
      this.#store.read()?.state.kind !== 'running' &&
      error === null &&
      sync !== 'idle' &&
      !this.#control.files.isSaving
    )
      throw new Error(`The sandbox does not run and is shown as ${sync}`)
    const { versions } = this.#store
    for (const { save, manifests, segments, number } of versions.list()) {
      for (const id of new Set([...manifests, ...segments]))
        if (!this.#objects.has(`segments/${ID}/${id}`))
          throw new Error(`Version ${number} has no segment ${id}`)
      if (!this.#box.snapshots.has(save)) throw new Error(`Version ${number} was never saved`)
    }
    const state = this.#store.read()?.state
    if (state?.kind !== 'running' || state.epoch !== this.#box.epoch || this.#box.sandboxd === undefined)
      return
    if (this.#box.isPartial) throw new Error('The sandbox runs with a part of its files')
    if (this.#epoch === state.epoch) return
    this.#epoch = state.epoch
    this.#checkStart(state.epoch)
  }

  /** Files of a new container are those of the newest version; on a disk they may be newer. */
  #checkStart(epoch: string): void {
    const { versions } = this.#store
    const { head, lastStart } = versions
    const restored = lastStart?.epoch === epoch ? lastStart.restored : undefined
    const source = restored === undefined ? undefined : versions.find(String(restored.version))
    if (this.#box.survives.stop !== 'nothing' || head === undefined) return
    const { snapshots } = this.#box
    // A restore of the workspace leaves the other folder.
    const files = joinRoots(snapshots.get(source?.save ?? head.save), snapshots.get(head.save))
    if (!isEqual(files, this.#box.files))
      throw new Error(`The sandbox started with other files than those of version ${head.number}`)
  }

  /** One random event. */
  #act(): void {
    const choice = this.#random.next()
    if (choice < 0.5) return this.#advance()
    if (choice < 0.72) return this.#write()
    if (choice < 0.75) return this.#crash()
    if (choice < 0.77) {
      this.#note('the sandbox dies')
      return this.#box.kill()
    }
    if (choice < 0.79) {
      this.#nowMs += 2 * HOUR_MS
      return this.#collect()
    }
    this.#operate()
  }

  /** A program in the sandbox changes a file; programs run only while control says so. */
  #write(): void {
    const state = this.#store.read()?.state
    if (state?.kind !== 'running' || state.epoch !== this.#box.epoch) return this.#advance()
    const name = `f${this.#random.int(0, 5)}`
    this.#minted += 1
    const content = this.#random.next() < 0.2 ? undefined : `c${this.#minted}`
    this.#note(`write ${name} ${content}`)
    this.#box.write(name, content)
  }

  /** Answers a call of control, or lets time pass until something is due. */
  #advance(): void {
    const call = this.#calls.splice(this.#random.int(0, Math.max(0, this.#calls.length - 1)), 1)[0]
    if (call !== undefined) return this.#answer(call)
    const due = this.#timers.toSorted((a, b) => a.atMs - b.atMs)[0]
    const atMs = Math.min(due?.atMs ?? Number.POSITIVE_INFINITY, this.#alarmMs ?? Number.POSITIVE_INFINITY)
    if (atMs === Number.POSITIVE_INFINITY) return
    this.#nowMs = Math.max(this.#nowMs, atMs)
    if (due !== undefined && due.atMs === atMs) {
      this.#timers = this.#timers.filter((each) => each !== due)
      due.fire()
      return
    }
    this.#alarmMs = undefined
    this.#note('alarm')
    this.#isInAlarm = true
    const control = this.#control
    void control.lifecycle
      .poll('alarm')
      .catch(() => undefined)
      .finally(() => {
        if (this.#control !== control) return
        this.#isInAlarm = false
        this.#keep()
      })
  }

  #answer({ name, effect, resolve, reject }: Call): void {
    const fault = this.#isFaulty ? this.#random.next() : 1
    const failure = name.startsWith('store')
      ? storeUnavailable('it responded with 500')
      : new SandwireError('provider_unavailable', 'No answer')
    if (fault < 0.03) {
      this.#note(`${name} fails`)
      reject(failure)
      return
    }
    if (!name.includes('changes')) this.#note(name)
    const perform = async (): Promise<void> => {
      try {
        const result = await effect()
        if (fault < 0.06) reject(failure)
        else resolve(result)
      } catch (error) {
        reject(error)
      }
    }
    void perform()
  }

  /** Control ends: its calls have no effect, or take effect without an answer. */
  #crash(): void {
    this.#note('control ends')
    for (const { effect } of this.#calls)
      if (this.#random.next() < 0.5)
        void Promise.resolve()
          .then(effect)
          .catch(() => undefined)
    this.#calls = []
    this.#timers = []
    if (this.#random.next() < 0.5) {
      this.#database.run('ROLLBACK TO durable')
      this.#alarmMs = this.#durableAlarmMs
    }
    if (this.#isInAlarm) {
      this.#alarmMs = this.#nowMs
      this.#durableAlarmMs = this.#nowMs
    }
    this.#isInAlarm = false
    this.#control = this.#open()
  }

  #operate(): void {
    const { lifecycle, files } = this.#control
    const versions = this.#store.versions.list()
    const some = versions[this.#random.int(0, Math.max(0, versions.length - 1))]
    const number = String(some?.number ?? 1)
    const run = (name: string, work: () => Promise<unknown>): void => {
      this.#note(name)
      work().then(
        () => {
          // The answer to a user leaves control when its changes are durable.
          this.#keep()
          this.#note(`${name}: done`)
        },
        (error: unknown) => this.#note(`${name}: ${SandwireError.from(error).code}`),
      )
    }
    switch (this.#random.int(0, 6)) {
      case 0:
      case 1:
        return run('start', () => lifecycle.startObserved('start'))
      case 2:
        return run('stop', () => lifecycle.stop('stop', false))
      case 3: {
        this.#minted += 1
        const name = `k${this.#minted}`
        return run(`checkpoint ${name}`, async () => {
          await lifecycle.start('checkpoint')
          files.checkName(name)
          const { save } = await files.save({ pause: 'checkpoint', kind: 'checkpoint', name })
          this.#promised.set(name, new Map(this.#box.snapshots.get(save)))
        })
      }
      case 4:
        return run(`restore ${number}`, async () => {
          const wanted = this.#box.snapshots.get(this.#store.versions.find(number)?.save ?? '')
          const control = this.#control
          await restoreVersion({ ...control, provider: {} }, number, 'restore')
          if (control === this.#control && wanted !== undefined)
            this.#note(`restored ${JSON.stringify([...wanted])}`)
        })
      case 5:
        return run(`restore the workspace of ${number}`, async () => {
          this.#minted += 1
          // Some requests are repeated.
          const key = `key ${this.#minted - this.#random.int(0, 1)}`
          const restore = { holder: 'c', key, version: some?.number ?? 1, kept: [] }
          this.#presents.push(await restoreWorkspace(this.#control, 'owner', restore))
        })
      case 6:
        return run(`remove ${number}`, async () => {
          files.remove(number)
          this.#presents = this.#presents.filter((each) => each !== some?.number)
          if (some?.name !== undefined) this.#promised.delete(some.name)
        })
    }
  }

  #collect(): void {
    this.#note('collect garbage')
    this.#control.garbage.collect().catch(() => undefined)
  }

  /** Lets everything run that needs no answer. */
  async #settle(): Promise<void> {
    for (let rounds = 0; rounds < 3; rounds += 1) await new Promise((resolve) => setImmediate(resolve))
  }

  #note(line: string): void {
    this.#trace.push(line)
  }

  /** What control wrote until now survives its end. */
  #keep(): void {
    this.#database.run('RELEASE durable')
    this.#database.run('SAVEPOINT durable')
    this.#durableAlarmMs = this.#alarmMs
  }

  /** A call of control; it leaves control when earlier changes of the database are durable. */
  #call<T>(name: string, effect: () => T | Promise<T>): Promise<T> {
    this.#keep()
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    this.#calls.push({ name, effect, resolve: (value) => resolve(value as T), reject })
    return promise
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((fire) => this.#timers.push({ atMs: this.#nowMs + ms, fire }))
  }

  #open(): Control {
    const store = this.#store
    const nowMs = (): number => this.#nowMs
    const sandboxd = (sandbox: string): SandboxdClient =>
      new SandboxdClient({
        sandbox,
        provider: this.#box,
        signer: { publicKey: 'k', sign: async () => 'token' },
        nowMs,
      })
    const versions = new SandboxVersions({
      store: store.versions,
      segments: openStoreModel(this.#objects, (name, effect) => this.#call(name, effect)),
      admit: async () => undefined,
      sandboxd,
      nowMs,
      sleep: async () => undefined,
      randomHex: (bytes) => {
        this.#minted += 1
        return this.#minted.toString(16).padStart(bytes * 2, '0')
      },
    })
    const files: FileVersions = new FileVersions({
      store: store.versions,
      versions,
      losesFiles: this.#box.survives.stop === 'nothing',
      provider: 'simulated',
      events: new StatusEvents(),
      metrics: new VersionMetrics(new Metrics(), nowMs),
      sandboxd,
      running: () => {
        const record = store.read()
        return record?.state.kind === 'running' ? { sandbox: record.id, state: record.state } : undefined
      },
      nowMs,
      sleep: (ms) => this.#sleep(ms),
      log: LOG,
      mintRequestId: () => 'r',
      hold: (work) => void work.catch(() => undefined),
      onChange: async () => undefined,
    })
    const lifecycle = new SandboxLifecycle({
      store,
      provider: this.#box,
      files,
      sandboxd,
      publicKey: 'k',
      refusals: { receive: async () => undefined },
      sandboxdMetrics: { receive: () => undefined },
      settings: { alarmMs: 30_000, limits: { sessionsPerSandbox: 7, outputBytesPerSecond: 0 } },
      ceilings: resolveCeilings(NO_CEILING_SETTINGS, {
        isShared: false,
        filesSurviveStop: true,
        maxSandboxes: 1,
        idleSeconds: 1e9,
      }),
      nowMs,
      log: LOG,
      index: {
        report: async () => undefined,
        reserve: async () => undefined,
        admitSession: async () => undefined,
        remove: async () => undefined,
        has: async () => true,
      },
      alarm: {
        set: async (atMs) => void (this.#alarmMs = Math.min(atMs, this.#alarmMs ?? atMs)),
        clear: async () => void (this.#alarmMs = undefined),
      },
      onDestroyed: async () => undefined,
      keepLog: async () => undefined,
      deleteSegments: async () => undefined,
      deleteAll: async () => undefined,
    })
    const garbage = new Garbage({
      store: store.versions,
      segments: openStoreModel(this.#objects, (name, effect) => this.#call(name, effect)),
      sandbox: () => ID,
      isSaving: () => files.isSaving,
      isFull: () => false,
      needsSegments: async () => false,
      nowMs,
      log: LOG,
    })
    return { lifecycle, files, garbage }
  }
}

/** Simulates one history of a sandbox's versions; throws with the seed and the last events when a promise is broken. */
export function simulateVersions(seed: number): Promise<void> {
  return new VersionsSimulation(seed).run()
}
