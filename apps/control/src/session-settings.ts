import { limits, limitTimeout } from '@sandwire/protocol'
import { z } from 'zod'
import { integer } from './limits.ts'

const timeout = integer(0, limits.MAX_SESSION_SECONDS).default(0)

/** Interval of pings to clients of `/ws/pty`; sandboxd's own default. */
const DEFAULT_PTY_HEARTBEAT_SECONDS = 30

/** Timeouts of sessions; they apply to new sessions and connections. */
export const sessionSettingsSchema = z.strictObject({
  /** Longest time from the creation of a session to its end, also of one that requests none; 0: no limit. */
  lifetimeSeconds: timeout,
  /** Longest time without input and output while a client is attached; 0: no limit. */
  idleSeconds: timeout,
  /** How long a terminal of `/ws/pty`, in sprites also a session of `/ws/claude-stream`, is kept for a client that lost its connection. */
  ptyReattachSeconds: integer(0, limits.MAX_KEEP_SECONDS).default(limits.KEEP_SECONDS),
  /** Interval of pings to clients of `/ws/pty`. One that answers none of four is disconnected. */
  ptyHeartbeatSeconds: integer(5, 3600).default(DEFAULT_PTY_HEARTBEAT_SECONDS),
})

export type SessionSettings = z.infer<typeof sessionSettingsSchema>
export type SessionTimeouts = Pick<SessionSettings, 'lifetimeSeconds' | 'idleSeconds'>

/** Timeouts as parameters of a new session, in seconds; those without a limit are absent. */
export function limitTimeouts(
  requested: { readonly lifetime?: number | undefined; readonly idle?: number | undefined },
  { lifetimeSeconds, idleSeconds }: SessionTimeouts,
): { readonly lifetime?: number; readonly idle?: number } {
  const lifetime = limitTimeout(requested.lifetime, lifetimeSeconds)
  const idle = limitTimeout(requested.idle, idleSeconds)
  return { ...(lifetime === undefined ? {} : { lifetime }), ...(idle === undefined ? {} : { idle }) }
}

/** Adds the interval of pings to the query of a terminal, where it is not the default: an older sandboxd does not know the parameter. */
export function withPing(query: string, heartbeatSeconds: number | undefined): string {
  if (heartbeatSeconds === undefined || heartbeatSeconds === DEFAULT_PTY_HEARTBEAT_SECONDS) return query
  return `${query === '' ? '' : `${query}&`}ping=${heartbeatSeconds}`
}
