import type { OutputLog } from '../output-log.ts'
import type { Attachment } from './attachment.ts'
import { type FlowInputs, keepFrom, shouldPause } from './flow.ts'
import type { Outbox } from './outbox.ts'
import type { SessionOptions } from './session-options.ts'

/** Pauses the process when whoever may hold it back has enough to read, and trims the log as far as that allows. */
export class SourceValve {
  readonly #log: OutputLog
  readonly #outbox: Outbox
  readonly #options: SessionOptions
  #isPaused = false
  /** Offset that whoever drove last has consumed. */
  #pin = 0
  /** Until then a session without a driver blocks rather than trims. */
  #graceUntilMs = Number.NEGATIVE_INFINITY

  constructor(deps: { log: OutputLog; outbox: Outbox; options: SessionOptions }) {
    this.#log = deps.log
    this.#outbox = deps.outbox
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
  pinAt(offset: number): void {
    this.#pin = offset
  }

  /** Trims, then pauses or resumes. An abandoned session is ending with nobody there: its program may run into the void. */
  apply(driver: Attachment | undefined, isAbandoned: boolean, nowMs: number): void {
    const inputs: FlowInputs = {
      log: this.#log,
      driver,
      overflow: isAbandoned ? 'trim' : this.#options.overflow,
      graceUntilMs: isAbandoned ? 0 : this.#graceUntilMs,
      pin: this.#pin,
      isPaused: this.#isPaused,
    }
    this.#log.trim(keepFrom(inputs, nowMs))
    const isPaused = shouldPause(inputs, nowMs)
    if (isPaused === this.#isPaused) return
    this.#isPaused = isPaused
    this.#outbox.push({ do: isPaused ? 'pause' : 'resume' })
  }
}
