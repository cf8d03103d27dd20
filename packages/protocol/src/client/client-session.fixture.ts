import { decodeClient, encode, type WireMessage } from '../codec.ts'
import { packData, type StreamName } from '../data-frame.ts'
import type { ClientMessage } from '../client-frames.ts'
import type { ServerMessage, Welcome } from '../server-frames.ts'
import { type ClientOptions, ClientSession } from './client-session.ts'
import type { AttemptId, ClientEffect, ClientStatus } from './effects.ts'

const bytesOf = (content: string): Uint8Array => new TextEncoder().encode(content)

/** What the consumer of a client was given, with bytes as text. */
export type Given = {
  readonly type: ClientEffect['do']
  readonly text?: string
  readonly end?: number
  readonly [key: string]: unknown
}

/** A client session with a clock and a server made of words. */
export class ClientBench {
  nowMs = 0
  readonly session: ClientSession
  status: ClientStatus | undefined
  #attempt: AttemptId = 0
  #sent: (ClientMessage | string)[] = []
  #given: Given[] = []
  /** Attempts that were closed. */
  readonly closed: AttemptId[] = []
  /** Where each attempt wanted to go. */
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
    for (const effect of effects) this.#take(effect)
  }

  /** Starts, opens and is welcomed. */
  static attached(options: Partial<ClientOptions> = {}, welcome: Partial<Welcome> = {}): ClientBench {
    const bench = new ClientBench(options)
    bench.run(bench.session.start(0))
    bench.open()
    bench.welcome(welcome)
    bench.takeSent()
    bench.takeGiven()
    return bench
  }

  open(): void {
    this.run(this.session.opened(this.#attempt, this.nowMs))
  }

  welcome(welcome: Partial<Welcome> = {}): void {
    const input = welcome.input ?? { at: 0, seq: 0 }
    this.hears({
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
    this.hears({ type: 'ack', input: input.at, seq: input.seq })
  }

  hears(message: ServerMessage, attempt = this.#attempt): void {
    this.hearsRaw(encode(message), attempt)
  }

  hearsData(content: string, stream: StreamName = 'stdout', attempt = this.#attempt): void {
    this.hearsRaw(packData(stream, bytesOf(content)), attempt)
  }

  hearsRaw(data: WireMessage, attempt = this.#attempt): void {
    this.run(this.session.receive(attempt, data, this.nowMs))
  }

  writes(content: string): void {
    this.run(this.session.write(bytesOf(content)))
  }

  consumes(end: number): void {
    this.run(this.session.consumed(end, this.nowMs))
  }

  cut(): void {
    this.run(this.session.closed(this.#attempt, undefined, this.nowMs))
  }

  /** Lets time pass, waking the session whenever it wants to be woken. */
  wait(ms: number): void {
    const untilMs = this.nowMs + ms
    for (let wakes = 0; ; wakes += 1) {
      const atMs = this.session.nextTickMs()
      if (atMs === undefined || atMs > untilMs) break
      if (wakes > 10_000) throw new Error('the session wants to be woken again and again')
      this.nowMs = Math.max(this.nowMs, atMs)
      this.run(this.session.tick(this.nowMs))
    }
    this.nowMs = untilMs
  }

  /** Cuts the connection, waits for the next attempt and opens it. */
  reconnect(): void {
    this.cut()
    this.wait(50)
    this.takeSent()
    this.open()
  }

  /** Messages sent since the last call; input as text. */
  takeSent(): (ClientMessage | string)[] {
    return this.#sent.splice(0)
  }

  /** What the consumer got since the last call. */
  takeGiven(): Given[] {
    return this.#given.splice(0)
  }

  #take(effect: ClientEffect): void {
    switch (effect.do) {
      case 'connect':
        this.#attempt = effect.attempt
        this.connects.push(effect.session)
        return
      case 'send': {
        const frame = decodeClient(effect.data)
        if (frame === undefined || effect.attempt !== this.#attempt) throw new Error('sent something odd')
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
        this.#given.push({ type, text: new TextDecoder().decode(bytes), ...rest })
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
        this.#given.push({ type, ...rest })
        return
      }
    }
  }
}
