import type { Role } from '../client-frames.ts'
import { TokenBucket } from '../token-bucket.ts'
import type { Dialect } from './attachment.ts'
import type { LinkId } from './effects.ts'

/** What the URL and token of a connection allow. */
export interface LinkRights {
  readonly principal: string
  readonly authority: Role
  /** What a newcomer is whose hello names no role; without it, as much as its authority. */
  readonly usualRole?: Role
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
export interface Link {
  readonly rights: LinkRights
  readonly sinceMs: number
  lastHeardMs: number
  readonly messages: TokenBucket
}

/** The connections of a session, whether or not they have said hello. */
export class LinkTable {
  readonly #links = new Map<LinkId, Link>()
  readonly #messagesPerSecond: number

  constructor(messagesPerSecond: number) {
    this.#messagesPerSecond = messagesPerSecond
  }

  add(link: LinkId, rights: LinkRights, nowMs: number): void {
    const messages = new TokenBucket(this.#messagesPerSecond, this.#messagesPerSecond * 2, nowMs)
    this.#links.set(link, { rights, sinceMs: nowMs, lastHeardMs: nowMs, messages })
  }

  get size(): number {
    return this.#links.size
  }

  get(link: LinkId): Link | undefined {
    return this.#links.get(link)
  }

  /** Forgets a connection; false when it was not known. */
  delete(link: LinkId): boolean {
    return this.#links.delete(link)
  }

  /** Every connection; safe against changes while it is walked. */
  all(): readonly (readonly [LinkId, Link])[] {
    return [...this.#links]
  }
}
