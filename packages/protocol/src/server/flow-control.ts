import { READ_AHEAD_BYTES } from '../limits.ts'
import type { OutputLog } from '../output-log.ts'
import type { Attachment } from './attachment.ts'
import type { EffectBuffer } from './effect-buffer.ts'
import type { Overflow, SessionOptions } from './session-options.ts'

/** A window up to this size belongs to a slow connection, or to one that has just been opened. */
const SMALL_WINDOW_BYTES = 128 * 1024

/**
 * Unread bytes at which a paused process continues. One read can return much more than the window, and on a slow connection all
 * of it is sent before the response to an interrupt; so there the process stays paused until little is left.
 */
function resumeThreshold(windowBytes: number): number {
  return windowBytes <= SMALL_WINDOW_BYTES ? windowBytes >> 3 : windowBytes >> 1
}

/** True when the driver's reading speed limits the process. */
function isHeldByDriver(driver: Attachment | undefined): driver is Attachment {
  return driver !== undefined && !driver.isStalled && !driver.skipsBacklog
}

/** Pauses the process while its readers are behind, and trims output from the log that no reader can still claim. */
export class FlowControl {
  readonly #log: OutputLog
  readonly #effects: EffectBuffer
  readonly #options: SessionOptions
  #isPaused = false
  /** Offset up to which the last driver has consumed the output. */
  #retainedFrom = 0
  /** Until then a session without a driver pauses the process instead of trimming. */
  #graceUntilMs = Number.NEGATIVE_INFINITY

  constructor(deps: { log: OutputLog; effects: EffectBuffer; options: SessionOptions }) {
    this.#log = deps.log
    this.#effects = deps.effects
    this.#options = deps.options
  }

  get isPaused(): boolean {
    return this.#isPaused
  }

  /** When the grace period ends, if the process may continue then. */
  nextMs(nowMs: number): number | undefined {
    return this.#isPaused && nowMs < this.#graceUntilMs ? this.#graceUntilMs : undefined
  }

  /** Starts the grace period, after a driver was disconnected. */
  beginGrace(nowMs: number): void {
    this.#graceUntilMs = nowMs + this.#options.limits.graceMs
  }

  /** Records the offset up to which the driver that leaves has consumed the output. */
  retainFrom(offset: number): void {
    this.#retainedFrom = offset
  }

  /** Trims the log, then pauses or resumes the process. An abandoned session is ending without readers, so its output is discarded. */
  apply(driver: Attachment | undefined, isAbandoned: boolean, nowMs: number): void {
    const overflow: Overflow = isAbandoned ? 'trim' : this.#options.overflow
    const isInGrace = !isAbandoned && driver === undefined && nowMs < this.#graceUntilMs
    const isBlocking = overflow === 'block' || isInGrace
    if (isHeldByDriver(driver)) this.#log.trim(driver.acked)
    else this.#log.trim(isBlocking ? this.#retainedFrom : this.#log.end)
    const isPaused = isHeldByDriver(driver)
      ? this.#mustWaitFor(driver)
      : isBlocking && this.#log.end - this.#retainedFrom >= this.#log.limitBytes
    if (isPaused === this.#isPaused) return
    this.#isPaused = isPaused
    this.#effects.push({ do: isPaused ? 'pause' : 'resume' })
  }

  #mustWaitFor(driver: Attachment): boolean {
    if (driver.outputPhase === 'awaitingSnapshot') return true
    // Output that cannot be sent yet stays in the pipe, where it costs no memory.
    if (this.#log.end - driver.sent >= READ_AHEAD_BYTES) return true
    const unread = this.#log.end - driver.acked
    const window = driver.window.sizeBytes
    return this.#isPaused ? unread > resumeThreshold(window) : unread >= window
  }
}
