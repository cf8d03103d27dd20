import type { Role } from '../client-frames.ts'
import { TokenBucket } from '../token-bucket.ts'
import type { Acknowledgement, Dialect } from './attachment.ts'
import type { ConnectionId } from './effects.ts'

/** What the URL and token of a connection allow, and how its attachment behaves. */
export interface ConnectionRights {
  readonly principal: string
  /** The highest role that the attachment may have. */
  readonly authority: Role
  /** Role of a new attachment whose hello names none; `authority` when absent. */
  readonly defaultRole?: Role
  readonly dialect: Dialect
  /** Take the lease even if another attachment holds it. */
  readonly take: boolean
  /** May start any command, and so set any environment variable. Without it only those of a terminal are accepted. */
  readonly exec?: boolean
  /** The hello does not start the process. */
  readonly waits?: boolean
  /** Who acknowledges output; the client when absent. Plain clients cannot, so theirs is always `connection`. */
  readonly acknowledgement?: Acknowledgement
  /** Where the output of a new attachment begins: with a replay or snapshot when absent, or at the end of the log. */
  readonly outputFrom?: 'start' | 'end'
  /**
   * A client that reads slowly gets the current screen in place of the output that it missed, and as driver does not pause the
   * process. Only terminals have screens, and only those that trim may go on.
   */
  readonly skipsBacklog?: boolean
  /** Role of an attachment that may drive but has no lease; `viewer` when absent. */
  readonly roleWithoutLease?: Role
  /** False when the caller itself detects dead clients; then silence does not close the connection. */
  readonly hasSilenceTimeout?: boolean
  /** Name that others see, in place of the one in the hello. */
  readonly name?: string
  /** The client is a coding agent: others see that, and it is kept out of private input. */
  readonly isAgent?: boolean
  /** Sign-in and grant that authorize the connection. */
  readonly login?: string
  readonly grant?: string
  /** Output budget shared with other attachments of the same account; when absent, the attachment has its own. */
  readonly bandwidth?: TokenBucket
  /** When the client must authenticate again, on the clock of the session. */
  readonly reauthorizeMs?: number
}

/** A connection, from before its hello until it is closed. */
export interface ConnectionEntry {
  readonly rights: ConnectionRights
  readonly sinceMs: number
  lastReceivedMs: number
  readonly messages: TokenBucket
}

/** The connections of a session, before and after their hello. */
export class ConnectionTable {
  readonly #connections = new Map<ConnectionId, ConnectionEntry>()
  readonly #messagesPerSecond: number

  constructor(messagesPerSecond: number) {
    this.#messagesPerSecond = messagesPerSecond
  }

  add(connectionId: ConnectionId, rights: ConnectionRights, nowMs: number): void {
    const messages = new TokenBucket(this.#messagesPerSecond, this.#messagesPerSecond * 2, nowMs)
    this.#connections.set(connectionId, { rights, sinceMs: nowMs, lastReceivedMs: nowMs, messages })
  }

  get size(): number {
    return this.#connections.size
  }

  get(connectionId: ConnectionId): ConnectionEntry | undefined {
    return this.#connections.get(connectionId)
  }

  /** Forgets a connection; false when it was not known. */
  delete(connectionId: ConnectionId): boolean {
    return this.#connections.delete(connectionId)
  }

  /** A copy of the table, so that callers may change it while they iterate. */
  all(): readonly (readonly [ConnectionId, ConnectionEntry])[] {
    return [...this.#connections]
  }
}
