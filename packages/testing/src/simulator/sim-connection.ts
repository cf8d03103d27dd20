import type { WireMessage } from '@sandwire/protocol'
import type { Scheduler } from './scheduler.ts'

/** The event handlers of one end of a connection. */
export interface ConnectionEnd {
  message(data: WireMessage): void
  /** The connection closed; `code` is the peer's close code, undefined after a drop. */
  closed(code: number | undefined): void
  /** Server's end only: the send buffer is full, or empty again. */
  blocked?(): void
  drained?(): void
}

/** Latency and buffering of a connection. */
export interface NetworkConditions {
  readonly minDelayMs: number
  readonly maxDelayMs: number
  /** Data frames are delivered one byte at a time. */
  readonly isSliced: boolean
  /** Buffered bytes towards the client above which the server's end is blocked. */
  readonly bufferBytes: number
}

export type Direction = 'up' | 'down'

/** Returns the messages to send in place of one; used to inject bugs. */
export type Tamper = (direction: Direction, data: WireMessage) => readonly WireMessage[]

/** Longest delay of frames that a client sent before it abandoned the connection. */
const LATE_MS = 8_000

/** TCP timeout of a connection that is silent. */
const TCP_TIMEOUT_MS = 900_000

/** One WebSocket in virtual time: ordered and reliable until it is dropped or black-holed. */
export class SimConnection {
  readonly #scheduler: Scheduler
  readonly #network: NetworkConditions
  readonly #ends: Record<Direction, ConnectionEnd>
  readonly #tamper: Tamper
  #isOpen = true
  #isBlackHole = false
  /** Extra delay of undelivered messages. */
  #lateMs = 0
  /** Messages the server still receives before the connection drops; undefined: no drop is planned. */
  #dropAfterReceived: number | undefined
  /** Time of the last delivery per direction; keeps messages in order. */
  readonly #lastMs: Record<Direction, number> = { up: 0, down: 0 }
  #bufferedBytes = 0
  #isBlocked = false

  /** `server` receives messages sent `up`, `client` those sent `down`. */
  constructor(
    scheduler: Scheduler,
    network: NetworkConditions,
    ends: { server: ConnectionEnd; client: ConnectionEnd },
    tamper: Tamper = (_, data) => [data],
  ) {
    this.#scheduler = scheduler
    this.#network = network
    this.#ends = { up: ends.server, down: ends.client }
    this.#tamper = tamper
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  send(direction: Direction, data: WireMessage): void {
    for (const message of this.#tamper(direction, data)) this.#send(direction, message)
  }

  /** Closes from one end; the other end's `closed` follows all messages sent before. */
  close(by: 'client' | 'server', code: number): void {
    if (!this.#isOpen) return
    const direction: Direction = by === 'client' ? 'up' : 'down'
    this.#later(direction, () => {
      if (!this.#isOpen) return
      this.#isOpen = false
      this.#ends[direction].closed(code)
    })
    const own: Direction = by === 'client' ? 'down' : 'up'
    if (by === 'server') this.#later(direction, () => this.#ends[own].closed(code))
  }

  /** Drops the connection: messages in flight are lost, and each end's `closed` fires at its own time. */
  drop(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    const { random } = this.#scheduler
    for (const end of [this.#ends.up, this.#ends.down]) {
      this.#scheduler.after(random.int(0, 50), () => end.closed(undefined))
    }
  }

  /** Drops the connection once the server has received `count` more messages, before its replies arrive. */
  dropAfterReceived(count: number): void {
    this.#dropAfterReceived = count
  }

  /** Closes the client's end only: what it sent arrives late, and the server's `closed` fires much later. */
  abandon(): void {
    if (!this.#isOpen) return
    const { random } = this.#scheduler
    this.#lateMs = random.int(0, LATE_MS)
    const client = this.#ends.down
    this.#ends.down = { message: () => {}, closed: () => {} }
    this.#scheduler.after(random.int(0, 50), () => client.closed(undefined))
    this.#scheduler.after(LATE_MS + random.int(0, 60_000), () => {
      this.#isOpen = false
      this.#ends.up.closed(undefined)
    })
  }

  /** Discards everything from now on; both ends stay open until the TCP timeout. */
  blackHole(): void {
    if (this.#isBlackHole || !this.#isOpen) return
    this.#isBlackHole = true
    this.#scheduler.after(TCP_TIMEOUT_MS, () => this.drop())
  }

  #send(direction: Direction, data: WireMessage): void {
    if (!this.#isOpen) return
    if (direction === 'down') this.#buffer(data.length)
    const pieces = this.#network.isSliced ? sliced(direction, data) : [data]
    for (const piece of pieces) this.#deliver(direction, piece)
    if (direction === 'down') this.#later('down', () => this.#unbuffer(data.length))
  }

  #deliver(direction: Direction, data: WireMessage): void {
    this.#later(direction, () => {
      if (!this.#isOpen) return
      this.#ends[direction].message(data)
      if (direction === 'up') this.#countUp()
    })
  }

  #countUp(): void {
    if (this.#dropAfterReceived === undefined) return
    this.#dropAfterReceived -= 1
    if (this.#dropAfterReceived <= 0) this.drop()
  }

  #later(direction: Direction, run: () => void): void {
    if (this.#isBlackHole) return
    const { random } = this.#scheduler
    const { minDelayMs, maxDelayMs } = this.#network
    const delayMs = random.int(minDelayMs, maxDelayMs)
    const atMs = Math.max(this.#lastMs[direction], this.#scheduler.nowMs + delayMs)
    // Slightly later than the previous message, because the scheduler breaks ties at random.
    this.#lastMs[direction] = atMs + 0.001
    this.#scheduler.after(atMs - this.#scheduler.nowMs, () => {
      if (this.#lateMs > 0) this.#scheduler.after(this.#lateMs, run)
      else run()
    })
  }

  #buffer(bytes: number): void {
    this.#bufferedBytes += bytes
    if (this.#isBlocked || this.#bufferedBytes <= this.#network.bufferBytes) return
    this.#isBlocked = true
    this.#ends.up.blocked?.()
  }

  #unbuffer(bytes: number): void {
    this.#bufferedBytes -= bytes
    if (!this.#isOpen || !this.#isBlocked || this.#bufferedBytes > 0) return
    this.#isBlocked = false
    this.#ends.up.drained?.()
  }
}

/** Splits a data frame into frames of one byte; control messages stay whole. */
function sliced(direction: Direction, data: WireMessage): WireMessage[] {
  if (typeof data === 'string' || data.byteLength === 0) return [data]
  if (direction === 'up') return Array.from(data, (byte) => Uint8Array.of(byte))
  const stream = data[0] ?? 0
  return Array.from(data.subarray(1), (byte) => Uint8Array.of(stream, byte))
}
