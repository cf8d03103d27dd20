import { DEFAULT_WINDOW, type WindowBounds } from '../ack-window.ts'
import {
  GRACE_MS,
  HELLO_MS,
  INPUT_WINDOW_BYTES,
  LOG_BYTES,
  MAX_ATTACHMENTS,
  MESSAGES_PER_SECOND,
  SILENCE_MS,
  STALL_MS,
  TURN_BYTES,
} from '../limits.ts'

/** What happens when the log is full and no driver is connected: the process is paused, or the oldest output is trimmed. */
export type Overflow = 'block' | 'trim'

/** Limits of one session; an operator may set each. */
export interface SessionLimits {
  readonly logBytes: number
  readonly window: WindowBounds
  readonly inputWindowBytes: number
  readonly maxAttachments: number
  readonly messagesPerSecond: number
  /** Output per second to one account, or to one attachment where accounts are not known; 0 means no limit. */
  readonly outputBytesPerSecond: number
  readonly turnBytes: number
  readonly graceMs: number
  readonly stallMs: number
  readonly helloMs: number
  readonly silenceMs: number
}

export const DEFAULT_LIMITS: SessionLimits = {
  logBytes: LOG_BYTES,
  window: DEFAULT_WINDOW,
  inputWindowBytes: INPUT_WINDOW_BYTES,
  maxAttachments: MAX_ATTACHMENTS,
  messagesPerSecond: MESSAGES_PER_SECOND,
  outputBytesPerSecond: 0,
  turnBytes: TURN_BYTES,
  graceMs: GRACE_MS,
  stallMs: STALL_MS,
  helloMs: HELLO_MS,
  silenceMs: SILENCE_MS,
}

export interface SessionOptions {
  readonly id: string
  readonly mode: 'pipe' | 'pty'
  readonly overflow: Overflow
  /** Seconds the session lives without any connection. */
  readonly keepSeconds: number
  /** Seconds from its creation until the session is ended; undefined: no limit. */
  readonly lifetimeSeconds?: number | undefined
  /** Seconds without input and output until a session with a connection is ended; undefined: no limit. */
  readonly idleSeconds?: number | undefined
  /** Default `client`: the driver sets the size. `process`: the driver requests one, and the process reports the one it has. */
  readonly sizeFrom?: 'client' | 'process'
  readonly limits: SessionLimits
}
