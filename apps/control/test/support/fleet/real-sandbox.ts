import { Database } from 'bun:sqlite'
import { DEFAULT_SANDBOX_LIMITS } from '@sandwire/internal-api'
import { NO_CEILING_SETTINGS } from '@sandwire/operator-settings'
import { AccountStore } from '../../../src/account/store.ts'
import { resolveCeilings } from '../../../src/ceilings/ceilings.ts'
import { createLog } from '../../../src/log.ts'
import { ObjectAlarm } from '../../../src/sandbox/alarm.ts'
import { SandboxLifecycle } from '../../../src/sandbox/lifecycle.ts'
import { SandboxdClient } from '../../../src/sandbox/sandboxd-client.ts'
import { SandboxStore } from '../../../src/sandbox/store.ts'
import { sqlOf } from '../bun-sql.ts'
import { MemoryProvider } from '../memory-provider.ts'
import type { FleetSettings } from './model-sandbox.ts'
import { emptyTally, type FleetSandbox } from './tally.ts'
import { NO_VERSIONS } from '../no-versions.ts'

const ID = '0'.repeat(32)
const SESSION = `${ID}.${'1'.repeat(26)}`
const OWNER = 'local'

function changesOf(database: Database): number {
  return database.query<{ n: number }, []>('SELECT total_changes() AS n').get()?.n ?? 0
}

/** A sandbox with the real `SandboxLifecycle`, real SQLite, and the index of a real account. */
export class RealSandbox implements FleetSandbox {
  readonly tally = emptyTally()
  readonly #lifecycle: SandboxLifecycle
  readonly #store: SandboxStore
  readonly #provider: MemoryProvider
  readonly #own = new Database(':memory:')
  readonly #account = new Database(':memory:')
  #alarm: number | null = null
  #alarmWrites = 0
  #nowMs = 0
  #movedMs = 0

  private constructor({ sleepAfterMs, alarmMs }: FleetSettings) {
    this.#store = new SandboxStore(sqlOf(this.#own))
    const provider = new MemoryProvider()
    this.#provider = provider
    provider.answer = () => Response.json({ attachments: 0, sessions: [this.#session()], exits: [] })
    const index = new AccountStore(sqlOf(this.#account))
    index.insertSandbox(ID, 'dev')
    const alarm = new ObjectAlarm({
      getAlarm: async () => this.#alarm,
      setAlarm: async (atMs) => this.#writeAlarm(atMs),
      deleteAlarm: async () => this.#writeAlarm(null),
    })
    const nowMs = (): number => this.#nowMs
    this.#lifecycle = new SandboxLifecycle({
      store: this.#store,
      provider,
      files: NO_VERSIONS,
      sandboxd: (sandbox) =>
        new SandboxdClient({
          sandbox,
          provider,
          nowMs,
          signer: {
            publicKey: 'k',
            sign: async () => 'token',
          },
        }),
      publicKey: 'k',
      refusals: { receive: async () => undefined },
      sandboxdMetrics: { receive: () => undefined },
      settings: {
        alarmMs,
        limits: { sessionsPerSandbox: 7, outputBytesPerSecond: 0 },
      },
      ceilings: resolveCeilings(NO_CEILING_SETTINGS, {
        isShared: false,
        filesSurviveStop: true,
        maxSandboxes: 100,
        idleSeconds: (sleepAfterMs ?? 600_000) / 1000,
      }),
      nowMs,
      log: createLog(
        () => undefined,
        () => 0,
      ),
      index: {
        report: async (_owner, view, sessions) => {
          this.tally.reports += 1
          index.setView(view)
          if (sessions !== undefined) index.setSessions(ID, sessions)
        },
        reserve: async (_owner, view) => {
          this.tally.reports += 1
          index.setView(view)
          index.setSessions(ID, [])
        },
        admitSession: async () => undefined,
        remove: async () => undefined,
        has: async () => true,
      },
      alarm: { set: (atMs) => alarm.setBy(atMs), clear: () => alarm.setAt(undefined) },
      onDestroyed: async () => undefined,
      keepLog: async () => undefined,
      deleteSegments: async () => undefined,
      deleteAll: async () => undefined,
    })
  }

  static async open(settings: FleetSettings): Promise<RealSandbox> {
    const made = new RealSandbox(settings)
    const { sleepAfterMs } = settings
    await made.#lifecycle.create({
      id: ID,
      owner: OWNER,
      name: 'dev',
      settings: {
        network: {
          policy: 'none',
          allow: [],
        },
        limits: DEFAULT_SANDBOX_LIMITS,
        env: {},
        sleepAfterMs,
      },
    })
    made.tally.reports = 0
    return made
  }

  get alarmMs(): number | undefined {
    return this.#alarm ?? undefined
  }

  get isRunning(): boolean {
    return this.#store.read()?.state.kind === 'running'
  }

  async attach(nowMs: number): Promise<void> {
    this.tally.wakeUps += 1
    this.tally.requests += 1
    await this.#count(nowMs, async () => {
      await this.#lifecycle.start('r')
      this.#store.touch(nowMs)
    })
  }

  async join(nowMs: number): Promise<void> {
    this.tally.wakeUps += 1
    this.tally.requests += 1
    this.#nowMs = nowMs
    if (!this.isRunning) this.tally.refusedJoins += 1
  }

  async fire(nowMs: number, movedMs: number): Promise<void> {
    this.tally.wakeUps += 1
    this.#alarm = null
    this.#movedMs = movedMs
    await this.#count(nowMs, () => this.#lifecycle.poll('r'))
  }

  [Symbol.dispose](): void {
    this.#own.close()
    this.#account.close()
  }

  async #count(nowMs: number, run: () => Promise<void>): Promise<void> {
    this.#nowMs = nowMs
    const before = [changesOf(this.#own), changesOf(this.#account), this.#alarmWrites] as const
    await run()
    this.tally.sandboxRows += changesOf(this.#own) - before[0] + this.#alarmWrites - before[2]
    this.tally.accountRows += changesOf(this.#account) - before[1]
    this.tally.starts = this.#provider.starts
    this.tally.idleStops = this.#provider.stops
  }

  #writeAlarm(atMs: number | null): void {
    this.#alarm = atMs
    this.#alarmWrites += 1
  }

  #session(): unknown {
    return {
      id: SESSION,
      state: 'running',
      mode: 'pty',
      cmd: 'sh',
      attachments: 1,
      keepSeconds: 60,
      output: {
        start: 0,
        end: 0,
      },
      exit: null,
      pinned: false,
      lastInputMs: this.#movedMs,
      lastOutputMs: this.#movedMs,
    }
  }
}
