/** Codes for why a sandbox stops. Receivers treat an unknown code as absent, so codes can be added. */
export const STOP_REASONS = [
  /** A user or the operator stopped it. */
  'requested',
  /** It had no input, output or pinned session for its idle timeout. */
  'idle',
  /** It is removed together with its files. */
  'removed',
  /** Its host is shutting down. */
  'shutting_down',
  /** Its host has not renewed its claim. */
  'unclaimed',
] as const
export type StopReason = (typeof STOP_REASONS)[number]

export function parseStopReason(text: string | null | undefined): StopReason | undefined {
  return STOP_REASONS.find((reason) => reason === text)
}
