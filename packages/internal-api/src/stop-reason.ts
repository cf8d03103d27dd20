const STOP_REASONS = ['asked', 'idle', 'removed', 'shutting_down'] as const
/** Why a sandbox is to stop: somebody wants it to, nothing moved in it, it is removed for good, or what keeps it ends. */
export type StopReason = (typeof STOP_REASONS)[number]

/** Reads why a sandbox is to stop; a reason that is missing or of another version says no more than that it was asked. */
export function readStopReason(text: string | null): StopReason {
  return STOP_REASONS.find((reason) => reason === text) ?? 'asked'
}

/** Beside sandboxd's socket: why it is asked to end, written before the signal, which says nothing. */
export const STOP_REASON_FILE = 'stop-reason'
