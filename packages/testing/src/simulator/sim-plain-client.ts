import { decodePlainServer, encode, type PlainServerMessage, type WireMessage } from '@sandwire/protocol'
import { SimConnection, type NetworkConditions } from './sim-connection.ts'
import { outputByte, outputStream } from './sim-process.ts'
import type { Relay } from './sim-client.ts'
import type { SimServer } from './sim-server.ts'
import type { Scheduler } from './scheduler.ts'

type PlainExit = Extract<PlainServerMessage, { type: 'exit' }>

/** State of a plain client's only connection. */
export type PlainStatus =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'open' }
  | { readonly kind: 'exited'; readonly exit: PlainExit }
  | { readonly kind: 'disconnected' }

/** The dependencies of a plain client. */
interface PlainDeps {
  readonly server: SimServer
  readonly relay: Relay
  readonly network: NetworkConditions
  readonly isPty: boolean
  readonly createId: string
}

/** A client without the subprotocol: one connection, no resume. It checks every byte it receives. */
export class SimPlainClient {
  readonly writer: number
  status: PlainStatus = { kind: 'waiting' }
  /** Next output offset expected. */
  position = 0
  readonly expected: number[] = []
  hasEof = false
  readonly #scheduler: Scheduler
  readonly #deps: PlainDeps
  #connection: SimConnection | undefined
  #exit: PlainExit | undefined
  #written = 0

  constructor(scheduler: Scheduler, writer: number, deps: PlainDeps) {
    this.#scheduler = scheduler
    this.writer = writer
    this.#deps = deps
  }

  get isFinished(): boolean {
    return this.status.kind === 'exited' || this.status.kind === 'disconnected'
  }

  start(): void {
    const { server, relay, network, createId } = this.#deps
    const holder: { connection?: SimConnection } = {}
    const connectionOf = (): SimConnection => {
      if (holder.connection === undefined) throw new Error('the connection does not exist yet')
      return holder.connection
    }
    const rights = { principal: 'p', authority: 'driver', take: false, dialect: 'plain' } as const
    const accepted = server.accept({ session: undefined, createId, rights }, connectionOf)
    if (typeof accepted === 'string') throw new Error(`a plain client was refused: ${accepted}`)
    const client = {
      message: (data: WireMessage) => this.#message(data),
      closed: (code: number | undefined) => this.#closed(code),
    }
    holder.connection = new SimConnection(this.#scheduler, network, { server: accepted, client })
    this.#connection = holder.connection
    this.status = { kind: 'open' }
    relay.opened(holder.connection)
  }

  write(length: number): void {
    const bytes = Uint8Array.from(
      { length },
      (_, index) => (this.writer << 4) | ((this.#written + index) & 15),
    )
    this.#written += length
    this.expected.push(...bytes)
    this.#connection?.send('up', bytes)
  }

  eof(): void {
    this.hasEof = true
    this.#connection?.send('up', encode({ type: 'eof' }))
  }

  #message(data: WireMessage): void {
    if (this.#exit !== undefined) throw new Error('a message followed the exit')
    const frame = decodePlainServer(data)
    if (frame === undefined) throw new Error('a plain client cannot decode a frame')
    if (frame.kind === 'control') {
      if (frame.message.type === 'error')
        throw new Error(`a plain client received the error ${frame.message.code}`)
      this.#exit = frame.message
      return
    }
    for (const byte of frame.payload) {
      if (byte !== outputByte(this.position)) throw new Error(`wrong byte at ${this.position}`)
      if (frame.stream !== outputStream(this.position, this.#deps.isPty)) throw new Error('wrong stream')
      this.position += 1
    }
  }

  #closed(code: number | undefined): void {
    if (this.isFinished) return
    if (code !== undefined && (code !== 1000 || this.#exit === undefined))
      throw new Error(`a plain client was closed with ${code}`)
    this.status = this.#exit === undefined ? { kind: 'disconnected' } : { kind: 'exited', exit: this.#exit }
  }
}
