/** How long a supervisor serves without anybody saying that its sandbox is wanted. */
export const UNCLAIMED_MS = 10 * 60_000
/** Time sandboxd has to say that it listens; a cold start on a loaded machine takes seconds. */
export const READY_MS = 20_000
/** Time sandboxd has to end its processes in order. */
export const STOP_GRACE_MS = 5_000
/** The log of a sandbox and the one before it together take at most twice this. */
export const MAX_LOG_BYTES = 4 * 1024 * 1024
/** What a line of the log may carry of what a sandbox wrote. */
export const MAX_LOG_LINE_CHARS = 8 * 1024
