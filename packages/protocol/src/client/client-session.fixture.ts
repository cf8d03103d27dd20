import { decodeClient, encode, type WireMessage } from '../codec.ts'
import { packData, type StreamName } from '../data-frame.ts'
import type { ClientMessage } from '../client-frames.ts'
import type { ServerMessage, Welcome } from '../server-frames.ts'
import { type ClientOptions, ClientSession } from './client-session.ts'
import type { AttemptId, ClientEffect, ClientStatus } from './effects.ts'

const bytesOf = (content: string): Uint8Array => new TextEncoder().encode(content)

/** What the consumer of a client was given, with bytes as text. */
export type Delivered = {
  readonly type: ClientEffect['do']
  readonly text?: string
  readonly end?: number
  readonly [key: string]: unknown
}

/** A client session with a clock. The test plays the server. */
export class ClientFixture {
  nowMs = 0
  readonly session: ClientSession
  status: ClientStatus | undefined
  #attempt: AttemptId = 0
  #sent: (ClientMessage | string)[] = []
  #delivered: Delivered[] = []
  /** Attempts that the session closed. */
  readonly closed: AttemptId[] = []
  /** Session that each attempt names. */
  readonly connects: (string | undefined)[] = []

  constructor(options: Partial<ClientOptions> = {}) {
    const identity = '00112233445566778899aabbccddeeff'
    const defaults = {
      identity,
      windowBytes: 1024,
      cols: 80,
      rows: 24,
      connectForMs: 10_000,
      retryForMs: 60_000,
    }
    this.session = new ClientSession({ ...defaults, ...options })
    this.session.jitter = () => 0
  }

  get attempt(): AttemptId {
    return this.#attempt
  }

  run(effects: readonly ClientEffect[]): void {
    for (const effect of effects) this.#perform(effect)
  }

  /** A session that is attached. */
  static attached(options: Partial<ClientOptions> = {}, welcome: Partial<Welcome> = {}): ClientFixture {
    const fixture = new ClientFixture(options)
    fixture.run(fixture.session.start(0))
    fixture.open()
    fixture.welcome(welcome)
    fixture.takeSent()
    fixture.takeDelivered()
    return fixture
  }

  open(): void {
    this.run(this.session.opened(this.#attempt, this.nowMs))
  }

  welcome(welcome: Partial<Welcome> = {}): void {
    const input = welcome.input ?? { at: 0, seq: 0 }
    this.receiveMessage({
      type: 'welcome',
      version: 1,
      session: 's1',
      attachment: 'a1',
      role: 'driver',
      authority: 'driver',
      epoch: 1,
      mode: 'pipe',
      output: this.session.received,
      inputWindow: 1_000,
      keepSeconds: 60,
      cols: 80,
      rows: 24,
      ...welcome,
      input,
    })
    this.receiveMessage({ type: 'ack', input: input.at, seq: input.seq })
  }

  receiveMessage(message: ServerMessage, attempt = this.#attempt): void {
    this.receiveRaw(encode(message), attempt)
  }

  receiveData(content: string, stream: StreamName = 'stdout', attempt = this.#attempt): void {
    this.receiveRaw(packData(stream, bytesOf(content)), attempt)
  }

  receiveRaw(data: WireMessage, attempt = this.#attempt): void {
    this.run(this.session.receive(attempt, data, this.nowMs))
  }

  write(content: string): void {
    this.run(this.session.write(bytesOf(content)))
  }

  consume(end: number): void {
    this.run(this.session.consumed(end, this.nowMs))
  }

  disconnect(): void {
    this.run(this.session.closed(this.#attempt, undefined, this.nowMs))
  }

  /** Advances the clock and calls `tick` whenever it is due. */
  wait(ms: number): void {
    const untilMs = this.nowMs + ms
    for (let wakes = 0; ; wakes += 1) {
      const atMs = this.session.nextTickMs()
      if (atMs === undefined || atMs > untilMs) break
      if (wakes > 10_000) throw new Error('the session asks for tick without end')
      this.nowMs = Math.max(this.nowMs, atMs)
      this.run(this.session.tick(this.nowMs))
    }
    this.nowMs = untilMs
  }

  /** Closes the connection, waits for the next attempt and opens it. */
  reconnect(): void {
    this.disconnect()
    this.wait(50)
    this.takeSent()
    this.open()
  }

  /** Messages sent since the last call; input as text. */
  takeSent(): (ClientMessage | string)[] {
    return this.#sent.splice(0)
  }

  /** What was delivered since the last call. */
  takeDelivered(): Delivered[] {
    return this.#delivered.splice(0)
  }

  #perform(effect: ClientEffect): void {
    switch (effect.do) {
      case 'connect':
        this.#attempt = effect.attempt
        this.connects.push(effect.session)
        return
      case 'send': {
        const frame = decodeClient(effect.data)
        if (frame === undefined || effect.attempt !== this.#attempt)
          throw new Error('the session sent an undecodable frame')
        this.#sent.push(frame.kind === 'input' ? new TextDecoder().decode(frame.bytes) : frame.message)
        return
      }
      case 'close':
        this.closed.push(effect.attempt)
        return
      case 'status':
        this.status = effect.status
        return
      case 'output':
      case 'snapshot': {
        const { do: type, bytes, ...rest } = effect
        this.#delivered.push({ type, text: new TextDecoder().decode(bytes), ...rest })
        return
      }
      case 'gap':
      case 'resized':
      case 'writable':
      case 'inputLost':
      case 'presence':
      case 'asked':
      case 'warning':
      case 'silence':
      case 'roundTrip': {
        const { do: type, ...rest } = effect
        this.#delivered.push({ type, ...rest })
        return
      }
    }
  }
}
