import {
  type ClientEffect,
  type ClientOptions,
  ClientSession,
  type ClientStatus,
  type ErrorCode,
  type Role,
} from '@sandwire/protocol'
import type { InjectedBug } from './injected-bugs.ts'
import { SimConnection, type NetworkConditions } from './sim-connection.ts'
import { outputByte, outputStream } from './sim-process.ts'
import { codeOfClose, screenAt, type SimServer } from './sim-server.ts'
import type { Scheduler } from './scheduler.ts'

/** How one simulated client behaves. */
export interface ClientPlan {
  /** The high four bits of its input bytes, which identify the writer in the process's input. */
  readonly writer: number
  readonly createId: string
  readonly principal: string
  readonly authority: Role
  readonly isPty: boolean
  /** Most milliseconds before output is consumed. */
  readonly lagMs: number
  readonly network: NetworkConditions
  readonly options: ClientOptions
}

/** The network between clients and the server. */
export interface Relay {
  isUp(): boolean
  opened(connection: SimConnection): void
  /** When a new connection must re-authorize, if ever. */
  drawAuthorization(): { readonly reauthorizeMs?: number }
}

/** The dependencies of a client. */
export interface ClientDeps {
  readonly scheduler: Scheduler
  readonly server: SimServer
  readonly relay: Relay
  readonly bug: InjectedBug
  readonly plan: ClientPlan
  /** The session to join; undefined for the client that creates it. */
  readonly joins: () => string | undefined
}

/** A client in virtual time that checks every byte it receives. */
export class SimClient {
  readonly plan: ClientPlan
  readonly session: ClientSession
  readonly #deps: ClientDeps
  readonly #scheduler: Scheduler
  readonly #connections = new Map<number, SimConnection>()
  status: ClientStatus = { kind: 'connecting', attempt: 0 }
  /** Next output offset expected. */
  position = 0
  gaps = 0
  screens = 0
  /** Nothing is consumed before this time. */
  #frozenUntilMs = 0
  /** Input bytes that must reach the process, in order. */
  readonly expected: number[] = []
  /** Control messages sent as driver, each with the input offset it was sent at. */
  readonly issued: { kind: string; value: string; at: number }[] = []
  hasEof = false
  #written = 0
  #wakeAtMs: number | undefined

  constructor(deps: ClientDeps) {
    this.plan = deps.plan
    this.#deps = deps
    this.#scheduler = deps.scheduler
    this.session = new ClientSession(deps.plan.options)
    this.session.jitter = () => deps.scheduler.random.next()
  }

  get isFinished(): boolean {
    return this.status.kind === 'exited' || this.status.kind === 'failed' || this.status.kind === 'detached'
  }

  start(): void {
    this.#run(this.session.start(this.#scheduler.nowMs))
  }

  /** Stops consuming for a while, as a suspended terminal does. */
  freeze(forMs: number): void {
    this.#frozenUntilMs = this.#scheduler.nowMs + forMs
  }

  write(length: number): void {
    if (!this.session.canWrite) return
    const bytes = Uint8Array.from(
      { length },
      (_, index) => (this.plan.writer << 4) | ((this.#written + index) & 15),
    )
    this.#written += length
    this.expected.push(...bytes)
    this.#run(this.session.write(bytes))
  }

  resize(cols: number): void {
    if (this.session.role === 'driver') {
      this.issued.push({ kind: 'resize', value: String(cols), at: this.expected.length })
    }
    this.#run(this.session.control({ type: 'resize', cols, rows: 24 }))
  }

  signal(signal: string): void {
    if (this.session.role !== 'driver') return
    this.issued.push({ kind: 'signal', value: signal, at: 0 })
    this.#run(this.session.control({ type: 'signal', signal }))
  }

  eof(): void {
    if (this.session.role !== 'driver') return
    this.hasEof = true
    this.issued.push({ kind: 'eof', value: '', at: this.expected.length })
    this.#run(this.session.control({ type: 'eof' }))
  }

  takeLease(): void {
    this.#run(this.session.lease({ type: 'take' }))
  }

  detach(): void {
    this.#run(this.session.detach())
  }

  #run(effects: readonly ClientEffect[]): void {
    for (const effect of effects) this.#perform(effect)
    this.#wake()
  }

  #perform(effect: ClientEffect): void {
    switch (effect.do) {
      case 'connect':
        this.#connect(effect.attempt, effect.session)
        return
      case 'send':
        this.#connections.get(effect.attempt)?.send('up', effect.data)
        return
      case 'close':
        this.#connections.get(effect.attempt)?.close('client', 1000)
        this.#connections.delete(effect.attempt)
        return
      case 'output':
        this.#checkOutput(effect)
        this.#consume(effect.end)
        return
      case 'gap':
        if (effect.from !== this.position)
          throw new Error(`gap from ${effect.from}, expected ${this.position}`)
        this.gaps += effect.to - effect.from
        this.position = effect.to
        return
      case 'snapshot':
        this.#checkScreen(effect.at, effect.bytes)
        this.#consume(effect.at)
        return
      case 'inputLost':
        this.expected.splice(this.expected.length - effect.bytes, effect.bytes)
        return
      case 'status':
        this.status = effect.status
        if (this.status.kind === 'exited') this.#checkExit(this.status.exit.outputEnd)
        return
      case 'resized':
      case 'writable':
      case 'presence':
      case 'asked':
      case 'warning':
      case 'roundTrip':
      case 'silence':
        return
    }
  }

  #checkOutput(output: Extract<ClientEffect, { do: 'output' }>): void {
    const { bytes, end, stream } = output
    const start = end - bytes.byteLength
    if (start !== this.position) throw new Error(`output at ${start}, expected ${this.position}`)
    let offset = start
    for (const byte of bytes) {
      if (byte !== outputByte(offset)) throw new Error(`wrong byte at ${offset}`)
      if (stream !== outputStream(offset, this.plan.isPty)) throw new Error(`wrong stream at ${offset}`)
      offset += 1
    }
    this.position = end
  }

  #checkScreen(at: number, bytes: Uint8Array): void {
    const screen = new TextDecoder().decode(bytes)
    if (screen !== new TextDecoder().decode(screenAt(at))) throw new Error(`wrong snapshot at ${at}`)
    if (at < this.position) throw new Error(`snapshot at ${at}, before ${this.position}`)
    if (at > this.position && this.position > 0) throw new Error('a snapshot skipped bytes without a gap')
    this.screens += 1
    this.position = at
  }

  #checkExit(outputEnd: number): void {
    if (outputEnd !== this.position) throw new Error(`exit at ${outputEnd}, received ${this.position}`)
  }

  #consume(end: number): void {
    const { nowMs, random } = this.#scheduler
    const lagMs = random.int(0, this.plan.lagMs)
    this.#scheduler.after(Math.max(lagMs, this.#frozenUntilMs - nowMs), () => {
      this.#run(this.session.consumed(end, this.#scheduler.nowMs))
    })
  }

  #connect(attempt: number, known: string | undefined): void {
    const { random } = this.#scheduler
    this.#scheduler.after(random.int(0, 20), () => {
      if (this.#deps.relay.isUp()) this.#open(attempt, known ?? this.#deps.joins())
      else this.#closed(attempt, undefined)
    })
  }

  #open(attempt: number, session: string | undefined): void {
    const { principal, authority, createId, network } = this.plan
    const holder: { connection?: SimConnection } = {}
    const connectionOf = (): SimConnection => {
      if (holder.connection === undefined) throw new Error('the connection does not exist yet')
      return holder.connection
    }
    const rights = {
      principal,
      authority,
      take: false,
      dialect: 'v1' as const,
      ...this.#deps.relay.drawAuthorization(),
    }
    const accepted = this.#deps.server.accept({ session, createId, rights }, connectionOf)
    if (typeof accepted === 'string') {
      this.#closed(attempt, accepted)
      return
    }
    const client = {
      message: (data: string | Uint8Array) =>
        this.#run(this.session.receive(attempt, data, this.#scheduler.nowMs)),
      closed: (code: number | undefined) => this.#closed(attempt, codeOfClose(code)),
    }
    const tamper = this.#deps.bug.connection?.(attempt)
    const connection = new SimConnection(this.#scheduler, network, { server: accepted, client }, tamper)
    holder.connection = connection
    this.#connections.set(attempt, connection)
    this.#deps.relay.opened(connection)
    this.#scheduler.after(handshakeMs(this.#scheduler), () =>
      this.#run(this.session.opened(attempt, this.#scheduler.nowMs)),
    )
  }

  #closed(attempt: number, code: ErrorCode | undefined): void {
    const refusal = code === undefined ? undefined : { code, message: code }
    this.#run(this.session.closed(attempt, refusal, this.#scheduler.nowMs))
  }

  #wake(): void {
    const atMs = this.session.nextTickMs()
    if (atMs === undefined || (this.#wakeAtMs !== undefined && this.#wakeAtMs <= atMs)) return
    this.#wakeAtMs = atMs
    this.#scheduler.after(atMs - this.#scheduler.nowMs, () => {
      if (this.#wakeAtMs !== atMs) return
      this.#wakeAtMs = undefined
      this.#run(this.session.tick(this.#scheduler.nowMs))
    })
  }
}

/** Delay between the server's accept and the client's open event. */
function handshakeMs(scheduler: Scheduler): number {
  return scheduler.random.int(1, 20)
}
