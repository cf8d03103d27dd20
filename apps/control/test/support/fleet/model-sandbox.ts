import { isIdle, type SandboxEvent, type SandboxState, step } from '../../../src/sandbox/state.ts'
import { emptyTally, type FleetSandbox } from './tally.ts'

export interface FleetSettings {
  readonly sleepAfterMs: number | null
  readonly alarmMs: number
}

const ID = 'x'

/**
 * A sandbox as `SandboxLifecycle` drives it, without storage: the same steps and idle check, and a count of the rows that
 * would be written. A test holds it against the real one.
 */
export class ModelSandbox implements FleetSandbox {
  readonly tally = emptyTally()
  readonly #settings: FleetSettings
  #state: SandboxState = { kind: 'stopped' }
  #alarmMs: number | undefined
  #lastActivityMs = 0
  #epoch = 0
  /** The last report to the account. */
  #reported = { view: '', movedMs: undefined as number | undefined }

  constructor(settings: FleetSettings) {
    this.#settings = settings
  }

  get alarmMs(): number | undefined {
    return this.#alarmMs
  }

  get isRunning(): boolean {
    return this.#state.kind === 'running'
  }

  attach(nowMs: number): void {
    this.tally.wakeUps += 1
    this.tally.requests += 1
    if (!this.isRunning) this.#start(nowMs)
    this.#touch(nowMs)
  }

  join(): void {
    this.tally.wakeUps += 1
    this.tally.requests += 1
    if (!this.isRunning) this.tally.refusedJoins += 1
  }

  fire(nowMs: number, movedMs: number): void {
    this.tally.wakeUps += 1
    // The platform clears an alarm that fires.
    this.#alarmMs = undefined
    if (this.#state.kind !== 'running') return
    this.#observe(nowMs)
    this.#touch(movedMs)
    this.#report([movedMs])
    const { startedMs } = this.#state
    const lastActivityMs = Math.max(this.#lastActivityMs, startedMs)
    if (isIdle({ nowMs, lastActivityMs, sleepAfterMs: this.#settings.sleepAfterMs, hasPin: false })) {
      this.tally.idleStops += 1
      this.tally.runningMs += nowMs - startedMs
      this.#apply(nowMs, { type: 'stop' })
      this.#apply(nowMs, { type: 'observed', status: { id: ID, state: 'stopped' } })
    }
    if (this.isRunning) this.#wakeBy(nowMs + this.#settings.alarmMs)
  }

  /** Adds the running time of a sandbox that still runs at the end. */
  finish(nowMs: number): void {
    if (this.#state.kind === 'running') this.tally.runningMs += nowMs - this.#state.startedMs
  }

  #start(nowMs: number): void {
    this.#apply(nowMs, { type: 'start' })
    this.tally.starts += 1
    this.#epoch += 1
    this.#touch(nowMs)
    const status = {
      id: ID,
      state: 'running',
      address: 'a',
      epoch: `${this.#epoch}`,
      startedMs: nowMs,
    } as const
    this.#apply(nowMs, { type: 'observed', status })
  }

  #observe(nowMs: number): void {
    if (this.#state.kind !== 'running') return
    const { address, epoch, startedMs } = this.#state
    this.#apply(nowMs, { type: 'observed', status: { id: ID, state: 'running', address, epoch, startedMs } })
  }

  #apply(nowMs: number, event: SandboxEvent): void {
    const { state, effects } = step(this.#state, event)
    if (state !== this.#state) this.tally.sandboxRows += 1
    this.#state = state
    for (const effect of effects) {
      if (effect === 'set_alarm') this.#wakeBy(nowMs + this.#settings.alarmMs)
      else if (effect === 'clear_alarm') this.#rest()
      else if (effect === 'publish' || effect === 'reserve')
        this.#report(state.kind === 'running' ? undefined : [])
    }
  }

  #touch(ms: number): void {
    if (ms <= this.#lastActivityMs) return
    this.#lastActivityMs = ms
    this.tally.sandboxRows += 1
  }

  /** Reports its state, and the last activity of its session, if any. */
  #report(sessions: readonly number[] | undefined): void {
    this.tally.reports += 1
    const startedMs = this.#state.kind === 'running' ? this.#state.startedMs : null
    const view = JSON.stringify([this.#state.kind, startedMs, this.#lastActivityMs])
    if (view !== this.#reported.view) this.tally.accountRows += 1
    this.#reported.view = view
    if (sessions === undefined) return
    const [movedMs] = sessions
    if (movedMs !== this.#reported.movedMs) this.tally.accountRows += 1
    this.#reported.movedMs = movedMs
  }

  #wakeBy(atMs: number): void {
    if (this.#alarmMs !== undefined && this.#alarmMs <= atMs) return
    this.#alarmMs = atMs
    this.tally.sandboxRows += 1
  }

  #rest(): void {
    this.#alarmMs = undefined
    this.tally.sandboxRows += 1
  }
}
