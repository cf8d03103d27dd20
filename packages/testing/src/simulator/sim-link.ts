import type { WireMessage } from '@sandwire/protocol'
import type { World } from './world.ts'

/** What one end of a link is told. */
export interface LinkEnd {
  message(data: WireMessage): void
  /** The connection is gone; `code` is the peer's close code, or undefined after a cut. */
  closed(code: number | undefined): void
  /** Only told to the server's end: its send buffer is full, or empty again. */
  blocked?(): void
  drained?(): void
}

/** How a link treats what it carries. */
export interface LinkWeather {
  readonly minDelayMs: number
  readonly maxDelayMs: number
  /** Data frames are delivered one byte at a time. */
  readonly isSliced: boolean
  /** Bytes towards the client after which the server's end is told to wait. */
  readonly bufferBytes: number
}

export type Direction = 'up' | 'down'

/** Rewrites what a link carries, to break it on purpose: the messages that are sent instead. */
export type Tamper = (direction: Direction, data: WireMessage) => readonly WireMessage[]

/** Longest time that frames of a connection its client has given up may still be under way. */
const LATE_MS = 8_000

/** How long a kernel believes in a connection that is silent. */
const KERNEL_MS = 900_000

/** One WebSocket in virtual time: ordered and reliable until it is cut or black-holed, like the real thing. */
export class SimLink {
  readonly #world: World
  readonly #weather: LinkWeather
  readonly #ends: Record<Direction, LinkEnd>
  readonly #tamper: Tamper
  #isOpen = true
  #isBlackHole = false
  /** Extra delay of everything that is still to be delivered. */
  #lateMs = 0
  /** Messages to be delivered to the server before the link is cut; undefined when it is not to be. */
  #cutAfterUp: number | undefined
  /** Time of the last delivery per direction; nothing overtakes. */
  readonly #lastMs: Record<Direction, number> = { up: 0, down: 0 }
  #bufferedBytes = 0
  #isBlocked = false

  /** `server` hears what goes up, `client` what comes down. */
  constructor(
    world: World,
    weather: LinkWeather,
    ends: { server: LinkEnd; client: LinkEnd },
    tamper: Tamper = (_, data) => [data],
  ) {
    this.#world = world
    this.#weather = weather
    this.#ends = { up: ends.server, down: ends.client }
    this.#tamper = tamper
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  send(direction: Direction, data: WireMessage): void {
    for (const message of this.#tamper(direction, data)) this.#send(direction, message)
  }

  /** One end closes; the other learns it after everything that was sent before. */
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

  /** The link breaks: what is in flight is lost and both ends learn it, at different times. */
  cut(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    const { random } = this.#world
    for (const end of [this.#ends.up, this.#ends.down]) {
      this.#world.after(random.int(0, 50), () => end.closed(undefined))
    }
  }

  /** The link breaks when the server has got `count` more messages, so that their effect is there and no answer is. */
  cutAfterUp(count: number): void {
    this.#cutAfterUp = count
  }

  /** The client loses the link and goes away; what it sent is late but arrives, and the server learns nothing soon. */
  abandon(): void {
    if (!this.#isOpen) return
    const { random } = this.#world
    this.#lateMs = random.int(0, LATE_MS)
    const client = this.#ends.down
    this.#ends.down = { message: () => {}, closed: () => {} }
    this.#world.after(random.int(0, 50), () => client.closed(undefined))
    this.#world.after(LATE_MS + random.int(0, 60_000), () => {
      this.#isOpen = false
      this.#ends.up.closed(undefined)
    })
  }

  /** Everything is swallowed from now on, and nobody is told before the kernels give up. */
  blackHole(): void {
    if (this.#isBlackHole || !this.#isOpen) return
    this.#isBlackHole = true
    this.#world.after(KERNEL_MS, () => this.cut())
  }

  #send(direction: Direction, data: WireMessage): void {
    if (!this.#isOpen) return
    if (direction === 'down') this.#buffer(data.length)
    const pieces = this.#weather.isSliced ? sliced(direction, data) : [data]
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
    if (this.#cutAfterUp === undefined) return
    this.#cutAfterUp -= 1
    if (this.#cutAfterUp <= 0) this.cut()
  }

  #later(direction: Direction, run: () => void): void {
    if (this.#isBlackHole) return
    const { random } = this.#world
    const { minDelayMs, maxDelayMs } = this.#weather
    const delayMs = random.int(minDelayMs, maxDelayMs)
    const atMs = Math.max(this.#lastMs[direction], this.#world.nowMs + delayMs)
    // A hair later than the last one, so that ties never reorder a link.
    this.#lastMs[direction] = atMs + 0.001
    this.#world.after(atMs - this.#world.nowMs, () => {
      if (this.#lateMs > 0) this.#world.after(this.#lateMs, run)
      else run()
    })
  }

  #buffer(bytes: number): void {
    this.#bufferedBytes += bytes
    if (this.#isBlocked || this.#bufferedBytes <= this.#weather.bufferBytes) return
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

/** A data frame as frames of one byte each; control messages stay whole. */
function sliced(direction: Direction, data: WireMessage): WireMessage[] {
  if (typeof data === 'string' || data.byteLength === 0) return [data]
  if (direction === 'up') return Array.from(data, (byte) => Uint8Array.of(byte))
  const stream = data[0] ?? 0
  return Array.from(data.subarray(1), (byte) => Uint8Array.of(stream, byte))
}
