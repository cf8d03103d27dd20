import { decodePlainServer, encode, type PlainServerMessage, type WireMessage } from '@sandwire/protocol'
import { SimLink, type LinkWeather } from './sim-link.ts'
import { outputByte, outputStream } from './sim-process.ts'
import type { Relay } from './sim-client.ts'
import type { SimServer } from './sim-server.ts'
import type { World } from './world.ts'

type PlainExit = Extract<PlainServerMessage, { type: 'exit' }>

/** How a plain client's only connection went. */
export type PlainStatus =
  | { readonly is: 'waiting' }
  | { readonly is: 'open' }
  | { readonly is: 'exited'; readonly exit: PlainExit }
  | { readonly is: 'cut' }

/** What a plain client needs of its surroundings. */
interface PlainDeps {
  readonly server: SimServer
  readonly relay: Relay
  readonly weather: LinkWeather
  readonly isPty: boolean
  readonly createId: string
}

/** A client without the subprotocol: one connection, no resume. It checks every byte it is given. */
export class SimPlainClient {
  readonly writer: number
  status: PlainStatus = { is: 'waiting' }
  /** Next output offset expected. */
  position = 0
  readonly expected: number[] = []
  hasEof = false
  readonly #world: World
  readonly #deps: PlainDeps
  #link: SimLink | undefined
  #exit: PlainExit | undefined
  #written = 0

  constructor(world: World, writer: number, deps: PlainDeps) {
    this.#world = world
    this.writer = writer
    this.#deps = deps
  }

  get isOver(): boolean {
    return this.status.is === 'exited' || this.status.is === 'cut'
  }

  start(): void {
    const { server, relay, weather, createId } = this.#deps
    const holder: { link?: SimLink } = {}
    const linkOf = (): SimLink => {
      if (holder.link === undefined) throw new Error('link is not there yet')
      return holder.link
    }
    const rights = { principal: 'p', authority: 'driver', take: false, dialect: 'plain' } as const
    const accepted = server.accept({ session: undefined, createId, rights }, linkOf)
    if (typeof accepted === 'string') throw new Error(`a plain client was refused: ${accepted}`)
    const client = {
      message: (data: WireMessage) => this.#message(data),
      closed: (code: number | undefined) => this.#closed(code),
    }
    holder.link = new SimLink(this.#world, weather, { server: accepted, client })
    this.#link = holder.link
    this.status = { is: 'open' }
    relay.opened(holder.link)
  }

  write(length: number): void {
    const bytes = Uint8Array.from(
      { length },
      (_, index) => (this.writer << 4) | ((this.#written + index) & 15),
    )
    this.#written += length
    this.expected.push(...bytes)
    this.#link?.send('up', bytes)
  }

  eof(): void {
    this.hasEof = true
    this.#link?.send('up', encode({ type: 'eof' }))
  }

  #message(data: WireMessage): void {
    if (this.#exit !== undefined) throw new Error('something came after the exit')
    const frame = decodePlainServer(data)
    if (frame === undefined) throw new Error('a plain client cannot decode a frame')
    if (frame.kind === 'control') {
      if (frame.message.type === 'error') throw new Error(`a plain client was told ${frame.message.code}`)
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
    if (this.isOver) return
    if (code !== undefined && (code !== 1000 || this.#exit === undefined))
      throw new Error(`a plain client was closed with ${code}`)
    this.status = this.#exit === undefined ? { is: 'cut' } : { is: 'exited', exit: this.#exit }
  }
}
