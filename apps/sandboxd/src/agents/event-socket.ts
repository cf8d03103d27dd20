import type { ServerWebSocket } from 'bun'
import type { Caller } from '../caller.ts'
import type { EventFeed, Viewer } from './event-feed.ts'
import type { StoredEntry } from './journal-file.ts'

/** Bytes that wait in a socket before its viewer counts as slow. */
const HIGH_WATER_BYTES = 256 * 1024
/** A viewer sends nothing, so only an unanswered ping shows that it is gone. */
const PING_MS = 30_000
const NORMAL_CLOSURE = 1000

/** The connection of one viewer to a run's events. */
export class EventSocket implements Viewer {
  readonly caller: Caller
  readonly #feed: EventFeed
  readonly #after: number
  #socket: ServerWebSocket<unknown> | undefined
  #timer: ReturnType<typeof setInterval> | undefined

  constructor(feed: EventFeed, after: number, caller: Caller) {
    this.#feed = feed
    this.#after = after
    this.caller = caller
  }

  opened(socket: ServerWebSocket<unknown>): void {
    this.#socket = socket
    this.#timer = setInterval(() => socket.ping(), PING_MS)
    this.#feed.add(this, this.#after)
  }

  drained(): void {
    this.#feed.drained(this)
  }

  closed(): void {
    clearInterval(this.#timer)
    this.#feed.remove(this)
  }

  /** Closes the connection of a viewer that lost its right. */
  close(code: number, reason: string): void {
    this.#socket?.close(code, reason)
  }

  send({ json }: StoredEntry): boolean {
    this.#socket?.sendText(json)
    return this.#hasRoom
  }

  partial(json: string): void {
    if (this.#hasRoom) this.#socket?.sendText(json)
  }

  end(): void {
    this.#socket?.close(NORMAL_CLOSURE, 'complete')
  }

  get #hasRoom(): boolean {
    return (this.#socket?.getBufferedAmount() ?? 0) < HIGH_WATER_BYTES
  }
}
