import type { OutputLog } from '../output-log.ts'
import type { Attachment } from './attachment.ts'
import { type FlowInputs, trimLimit, shouldPause } from './flow.ts'
import type { EffectBuffer } from './effect-buffer.ts'
import type { SessionOptions } from './session-options.ts'

/** Pauses the process when whoever may hold it back has enough to read, and trims the log as far as that allows. */
export class FlowControl {
  readonly #log: OutputLog
  readonly #effects: EffectBuffer
  readonly #options: SessionOptions
  #isPaused = false
  /** Offset that whoever drove last has consumed. */
  #retainedFrom = 0
  /** Until then a session without a driver blocks rather than trims. */
  #graceUntilMs = Number.NEGATIVE_INFINITY

  constructor(deps: { log: OutputLog; effects: EffectBuffer; options: SessionOptions }) {
    this.#log = deps.log
    this.#effects = deps.effects
    this.#options = deps.options
  }

  get isPaused(): boolean {
    return this.#isPaused
  }

  /** When the grace ends, if that may let a paused process go on. */
  nextMs(nowMs: number): number | undefined {
    return this.#isPaused && nowMs < this.#graceUntilMs ? this.#graceUntilMs : undefined
  }

  /** Begins a grace: a driver was cut off. What never had one waits for nobody. */
  beginGrace(nowMs: number): void {
    this.#graceUntilMs = nowMs + this.#options.limits.graceMs
  }

  /** Remembers what the driver that is leaving has consumed. */
  retainFrom(offset: number): void {
    this.#retainedFrom = offset
  }

  /** Trims, then pauses or resumes. An abandoned session is ending with nobody there: its program may run into the void. */
  apply(driver: Attachment | undefined, isAbandoned: boolean, nowMs: number): void {
    const inputs: FlowInputs = {
      log: this.#log,
      driver,
      overflow: isAbandoned ? 'trim' : this.#options.overflow,
      graceUntilMs: isAbandoned ? 0 : this.#graceUntilMs,
      retainedFrom: this.#retainedFrom,
      isPaused: this.#isPaused,
    }
    this.#log.trim(trimLimit(inputs, nowMs))
    const isPaused = shouldPause(inputs, nowMs)
    if (isPaused === this.#isPaused) return
    this.#isPaused = isPaused
    this.#effects.push({ do: isPaused ? 'pause' : 'resume' })
  }
}
