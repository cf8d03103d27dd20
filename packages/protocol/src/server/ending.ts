import type { SessionParts } from './session-parts.ts'

/** Ends the process, and then the session. */
export function beginEnding({ lifecycle, effects }: SessionParts, nowMs: number): void {
  if (lifecycle.beginEnding(nowMs)) effects.push({ do: 'terminate' })
}
