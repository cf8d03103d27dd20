import type { HostLink } from '../sessions/session-links.ts'

/** Stands between a session and a client that speaks an envelope of its own. */
export interface Envelope {
  /** The connection as the session sees it, over the one that the client has. */
  over(client: HostLink): HostLink
  /** The session knows the connection. */
  opened(): void
  heard(message: string | Uint8Array): void
  /** The client is gone. */
  left(): void
}
