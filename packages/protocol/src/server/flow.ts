import { AHEAD_BYTES } from '../limits.ts'
import type { OutputLog } from '../output-log.ts'
import type { Attachment } from './attachment.ts'
import type { Overflow } from './session-options.ts'

/** What decides whether the process may go on writing. */
export interface FlowInputs {
  readonly log: OutputLog
  /** The driver, when it has a connection. */
  readonly driver: Attachment | undefined
  readonly overflow: Overflow
  /** Until then a session without a driver blocks rather than trims. */
  readonly graceUntilMs: number
  /** Offset that whoever drove last has consumed. */
  readonly retainedFrom: number
  readonly isPaused: boolean
}

/** True when the driver's pace is the process's pace. */
function isHeldByDriver(driver: Attachment | undefined): driver is Attachment {
  return driver !== undefined && !driver.isStalled
}

/** True while bytes behind the last driver's place must not be lost. */
function isBlocking(inputs: FlowInputs, nowMs: number): boolean {
  if (inputs.overflow === 'block') return true
  return inputs.driver === undefined && nowMs < inputs.graceUntilMs
}

/** A window up to this size belongs to a slow link, or one that has just begun. */
const SMALL_WINDOW_BYTES = 128 * 1024

/**
 * Unread bytes at which a paused process goes on. A single read can bring far more than is wanted, and on a slow link all
 * of it stands in front of what follows an interrupt; so there the process waits until little is left.
 */
function resumeAt(windowBytes: number): number {
  return windowBytes <= SMALL_WINDOW_BYTES ? windowBytes >> 3 : windowBytes >> 1
}

/** Whether reading from the process has to stop. Once paused, it goes on when there is room again. */
export function shouldPause(inputs: FlowInputs, nowMs: number): boolean {
  const { log, driver, retainedFrom, isPaused } = inputs
  if (isHeldByDriver(driver)) {
    if (driver.awaitsSnapshot) return true
    const unread = log.end - driver.acked
    const window = driver.window.sizeBytes
    // What cannot be sent yet is better left in the pipe: there it costs nothing and is read when it can go out at once.
    if (log.end - driver.sent >= AHEAD_BYTES) return true
    return isPaused ? unread > resumeAt(window) : unread >= window
  }
  if (!isBlocking(inputs, nowMs)) return false
  return log.end - retainedFrom >= log.limitBytes
}

/** Offset from which on nothing may be trimmed. */
export function trimLimit(inputs: FlowInputs, nowMs: number): number {
  if (isHeldByDriver(inputs.driver)) return inputs.driver.acked
  return isBlocking(inputs, nowMs) ? inputs.retainedFrom : inputs.log.end
}
