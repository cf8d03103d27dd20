import type { Role } from '../client-frames.ts'
import { TokenBucket } from '../token-bucket.ts'
import type { Dialect } from './attachment.ts'
import type { ConnectionId } from './effects.ts'

/** What the URL and token of a connection allow. */
export interface ConnectionRights {
  readonly principal: string
  readonly authority: Role
  /** What a newcomer is whose hello names no role; without it, as much as its authority. */
  readonly defaultRole?: Role
  readonly dialect: Dialect
  /** Take the lease even if somebody drives. */
  readonly take: boolean
  /** May start any command, and so set any environment variable. Without it only those of a terminal are taken. */
  readonly exec?: boolean
  /** It came to watch what others start, so its hello starts nothing. */
  readonly waits?: boolean
  /**
   * A translator speaks for a client that knows neither offsets nor roles. It begins at the end of the log without a screen,
   * what its connection took is consumed, and while it does not drive it may type all the same. Whether the client is still
   * there is for the translator to find out.
   */
  readonly isRelayed?: boolean
  /** What others see of it, whatever its hello says. */
  readonly name?: string
  /** Sign-in and grant that the right to be here hangs on. */
  readonly login?: string
  readonly grant?: string
  /** The budget of output that it shares with others of the same person; without it, its attachment has one of its own. */
  readonly bandwidth?: TokenBucket
  /** When the right to be here has to be shown again, on the clock of the session. */
  readonly reauthorizeMs?: number
}

/** What is known of a connection, from before its hello until it is gone. */
export interface ConnectionEntry {
  readonly rights: ConnectionRights
  readonly sinceMs: number
  lastReceivedMs: number
  readonly messages: TokenBucket
}

/** The connections of a session, whether or not they have said hello. */
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

  /** Every connection; safe against changes while it is walked. */
  all(): readonly (readonly [ConnectionId, ConnectionEntry])[] {
    return [...this.#connections]
  }
}
