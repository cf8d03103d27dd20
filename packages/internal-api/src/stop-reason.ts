/** File beside sandboxd's socket that holds the `StopReason`; the supervisor writes it before it sends the signal. */
export const STOP_REASON_FILE = 'stop-reason'
