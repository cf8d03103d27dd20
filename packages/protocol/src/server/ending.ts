import type { SessionParts } from './session-parts.ts'

/** Ends the process, and then the session. */
export function beginEnding({ life, outbox }: SessionParts, nowMs: number): void {
  if (life.beginEnding(nowMs)) outbox.push({ do: 'terminate' })
}
