/** Behaviors of the Sprites API that differ between versions, or that clients must survive. A test changes them at any time. */
export interface SpritesBehavior {
  /** Debug messages before `session_info`. */
  sendsDebug: boolean
  /** Delay of `session_info` after the upgrade. */
  sessionInfoMs: number
  /** `session_id` as a number, as earlier versions sent it. */
  hasNumericSessionId: boolean
  /** The text `exit` message precedes the last output. */
  exitsEarly: boolean
  /** Non-TTY: the binary `03 NN` frame is sent. */
  sendsExitFrame: boolean
  /** How an exec connection ends after the exit: with a close frame, or without one, as the live service does for terminals. */
  execEnd: 'close' | 'drop'
  /** How long an exec connection stays open after the exit. */
  execEndMs: number
  /** Non-TTY: a command that ended before `session_info` is served from a history of 64 KiB with stderr merged into stdout. */
  hasFastPath: boolean
  /** What an attach to a terminal replays: its raw bytes, or a rendered screen without hyperlinks. */
  replay: 'raw' | 'rendered'
  /** Time until a client that does not read is disconnected. */
  slowReaderMs: number
  /** An empty directory is listed as `null`, as the live service does. */
  listsEmptyAsNull: boolean
  /** Errors about files have a `code`; the live service sends none. */
  hasErrorCodes: boolean
  /** Status of a stored network policy; clients expect 204, the documentation says 200. */
  policyStatus: 200 | 204
  /** Answers a request instead of the API, for 401, 429, 503 and other failures. Undefined: the API answers. */
  intercept: ((request: Request) => Response | undefined) | undefined
}

/** The behavior that was observed on the live service. */
export function liveBehavior(): SpritesBehavior {
  return {
    sendsDebug: true,
    sessionInfoMs: 0,
    hasNumericSessionId: false,
    exitsEarly: false,
    sendsExitFrame: true,
    execEnd: 'close',
    execEndMs: 50,
    hasFastPath: false,
    replay: 'raw',
    slowReaderMs: 30_000,
    listsEmptyAsNull: true,
    hasErrorCodes: false,
    policyStatus: 204,
    intercept: undefined,
  }
}
