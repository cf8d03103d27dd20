import type { ServerWebSocket } from 'bun'
import { TokenBucket } from '@sandwire/protocol'
import type { Caller } from '../caller.ts'
import type { EventFeed, Viewer } from './event-feed.ts'
import type { StoredEntry } from './journal-file.ts'

/** Bytes that wait in a socket before its viewer counts as slow. */
const HIGH_WATER_BYTES = 256 * 1024
/** A viewer may send nothing, so only an unanswered ping shows that it is gone. */
const PING_MS = 30_000
const NORMAL_CLOSURE = 1000
/** Messages to control, which parses and stores those of conversations. More come from a program that floods, and wait; partial ones are left out. */
const CONTROL_PACE = { perSecond: 100, burst: 1_000 }

/** The close frame after the last message. */
export interface SocketEnd {
  readonly code: number
  readonly reason: string
}

/** Translates a feed for clients that speak another protocol, and takes what they send. Returns messages for the client. */
export interface FeedAdapter {
  /** The connection is open. */
  opened(): readonly string[]
  entry(entry: StoredEntry): readonly string[]
  partial(json: string): readonly string[]
  received(message: string | Uint8Array): { readonly texts: readonly string[]; readonly end?: SocketEnd }
  closed(): void
}

/** The connection of one viewer to a run's events. */
export class EventSocket implements Viewer {
  readonly caller: Caller
  readonly #feed: EventFeed
  readonly #after: number
  readonly #adapter: FeedAdapter | undefined
  #socket: ServerWebSocket<unknown> | undefined
  #timer: ReturnType<typeof setInterval> | undefined
  /** Absent: other viewers get all they can take. */
  readonly #turns: TokenBucket | undefined
  /** Runs while a message waits for its turn. */
  #turnTimer: ReturnType<typeof setTimeout> | undefined

  constructor(feed: EventFeed, after: number, caller: Caller, adapter?: FeedAdapter) {
    this.#feed = feed
    this.#after = after
    this.#adapter = adapter
    this.caller = caller
    if (caller.authority === 'control')
      this.#turns = new TokenBucket(CONTROL_PACE.perSecond, CONTROL_PACE.burst, performance.now())
  }

  opened(socket: ServerWebSocket<unknown>): void {
    this.#socket = socket
    this.#timer = setInterval(() => socket.ping(), PING_MS)
    for (const text of this.#adapter?.opened() ?? []) socket.sendText(text)
    this.#feed.add(this, this.#after)
  }

  received(message: string | Uint8Array): void {
    const answer = this.#adapter?.received(message)
    for (const text of answer?.texts ?? []) this.#socket?.sendText(text)
    if (answer?.end !== undefined) this.close(answer.end.code, answer.end.reason)
    // A client that sends without reading answers would fill the memory.
    else if (answer !== undefined && !this.#hasRoom && answer.texts.length > 0) this.#socket?.terminate()
  }

  drained(): void {
    if (this.#turnTimer === undefined) this.#feed.drained(this)
  }

  closed(): void {
    clearInterval(this.#timer)
    clearTimeout(this.#turnTimer)
    this.#feed.remove(this)
    this.#adapter?.closed()
  }

  /** Closes the connection of a viewer that lost its right. */
  close(code: number, reason: string): void {
    this.#socket?.close(code, reason)
  }

  send(entry: StoredEntry): boolean {
    for (const text of this.#adapter?.entry(entry) ?? [entry.json]) this.#socket?.sendText(text)
    return this.#takeTurn() && this.#hasRoom
  }

  partial(json: string): void {
    if (!this.#hasRoom || this.#turns?.take(1, performance.now()) === false) return
    for (const text of this.#adapter?.partial(json) ?? [json]) this.#socket?.sendText(text)
  }

  end(): void {
    this.#socket?.close(NORMAL_CLOSURE, 'complete')
  }

  /** False: the next message waits for its turn. */
  #takeTurn(): boolean {
    const waitMs = this.#turns?.waitMs(1, performance.now()) ?? 0
    if (waitMs === 0) return this.#turns?.take(1, performance.now()) ?? true
    this.#turnTimer = setTimeout(() => {
      this.#turnTimer = undefined
      this.drained()
    }, waitMs)
    return false
  }

  get #hasRoom(): boolean {
    return (this.#socket?.getBufferedAmount() ?? 0) < HIGH_WATER_BYTES
  }
}
