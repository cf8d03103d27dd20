import type { AgentLimits } from './api.ts'

/** What the agent is doing, as far as time limits are concerned. */
export type Phase =
  /** Working: every line is a sign of life. */
  | 'working'
  /** Waiting for the answer to an approval, which has its own deadline. */
  | 'awaiting'
  /** Waiting for a message. */
  | 'idle'
  /** Has nothing more to do and should exit. */
  | 'finishing'

/** Why a run must end now: it took too long, nobody sent a message, or its work is done and the program does not exit. */
export interface Overrun {
  readonly kind: 'timeout' | 'no_message' | 'no_exit'
  readonly message: string
}

const format = (ms: number): string =>
  ms >= 60_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 1000)} s`

/** Time limits of a run. Which phase the agent is in decides which of them apply. */
export class Watchdog {
  readonly #limits: AgentLimits
  readonly #startedMs: number
  #phase: Phase = 'working'
  /** Last sign of life, or begin of the phase. */
  #sinceMs: number

  constructor(limits: AgentLimits, nowMs: number) {
    this.#limits = limits
    this.#startedMs = nowMs
    this.#sinceMs = nowMs
  }

  /** The program wrote something. */
  alive(nowMs: number): void {
    if (this.#phase !== 'finishing') this.#sinceMs = nowMs
  }

  enter(phase: Phase, nowMs: number): void {
    if (phase === this.#phase) return
    this.#phase = phase
    this.#sinceMs = nowMs
  }

  get deadlineMs(): number {
    const wallMs = this.#startedMs + this.#limits.wallClockMs
    const phaseMs = this.#phaseDeadlineMs()
    return phaseMs === undefined ? wallMs : Math.min(wallMs, phaseMs)
  }

  check(nowMs: number): Overrun | undefined {
    const { wallClockMs, idleMs, exitMs, restMs = idleMs } = this.#limits
    const phaseMs = this.#phaseDeadlineMs()
    if (phaseMs !== undefined && nowMs >= phaseMs) {
      if (this.#phase === 'finishing')
        return {
          kind: 'no_exit',
          message: `The agent did not exit within ${format(exitMs)} after its result`,
        }
      if (this.#phase === 'idle')
        return { kind: 'no_message', message: `No message came for ${format(restMs)}` }
      return { kind: 'timeout', message: `The agent reported nothing for ${format(idleMs)}` }
    }
    if (nowMs >= this.#startedMs + wallClockMs)
      return { kind: 'timeout', message: `The run reached its limit of ${format(wallClockMs)}` }
    return undefined
  }

  #phaseDeadlineMs(): number | undefined {
    const { idleMs, exitMs, restMs = idleMs } = this.#limits
    switch (this.#phase) {
      case 'awaiting':
        return undefined
      case 'idle':
        return this.#sinceMs + restMs
      case 'working':
        return this.#sinceMs + idleMs
      case 'finishing':
        return this.#sinceMs + exitMs
    }
  }
}

/** Steps that end a program, each taken when the one before had no effect in time. */
export type StopStep = 'interrupt' | 'end_input' | 'terminate' | 'kill'

const STEPS: readonly StopStep[] = ['interrupt', 'end_input', 'terminate', 'kill']

/** Ends a program by interrupt, end of input, TERM and KILL. */
export class StopLadder {
  readonly #stepMs: number
  #next: number
  #atMs: number

  /** Begins with `first` as soon as `due` is called. */
  constructor(stepMs: number, first: StopStep, nowMs: number) {
    this.#stepMs = stepMs
    this.#next = STEPS.indexOf(first)
    this.#atMs = nowMs
  }

  get deadlineMs(): number | undefined {
    return this.#next < STEPS.length ? this.#atMs : undefined
  }

  /** The interrupted turn has ended, so nothing is left to wait for before the next step. */
  skipWait(nowMs: number): void {
    this.#atMs = Math.min(this.#atMs, nowMs)
  }

  /** True after the interrupt was sent and before the next step. */
  get isInterrupting(): boolean {
    return this.#next === STEPS.indexOf('end_input')
  }

  /** The step to take now. */
  due(nowMs: number): StopStep | undefined {
    const step = STEPS[this.#next]
    if (step === undefined || nowMs < this.#atMs) return undefined
    this.#next += 1
    this.#atMs = nowMs + this.#stepMs
    return step
  }
}
