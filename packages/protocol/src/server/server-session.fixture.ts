import type { ClientMessage, Hello, PlainClientMessage, Role } from '../client-frames.ts'
import { decodePlainServer, decodeServer, encode, type WireMessage } from '../codec.ts'
import { packData } from '../data-frame.ts'
import type { PlainServerMessage, ServerMessage } from '../server-frames.ts'
import type { Attachment } from './attachment.ts'
import type { ConnectionId, ServerEffect } from './effects.ts'
import type { ConnectionRights } from './connection-table.ts'
import { ServerSession } from './server-session.ts'
import { DEFAULT_LIMITS, type SessionLimits, type SessionOptions } from './session-options.ts'

/** What a client heard: a control message, bytes of a stream as text, or the end of its connection. */
export type Heard =
  | ServerMessage
  | PlainServerMessage
  | { readonly type: 'stdout' | 'stderr' | 'screen'; readonly text: string }
  | { readonly type: 'closed'; readonly code: number; readonly reason: string }

const text = (bytes: Uint8Array): string => new TextDecoder('latin1').decode(bytes)
const bytesOf = (content: string): Uint8Array => new TextEncoder().encode(content)

/** A server session with a clock, whose effects are kept by kind until somebody asks for them. */
export class Bench {
  nowMs = 0
  readonly session: ServerSession
  readonly #heard = new Map<ConnectionId, WireMessage[]>()
  readonly #closed = new Map<ConnectionId, { code: number; reason: string }>()
  #effects: ServerEffect[] = []
  #connections = 0

  constructor(options: Partial<Omit<SessionOptions, 'limits'>> & { limits?: Partial<SessionLimits> } = {}) {
    const { limits, ...rest } = options
    const defaults = { id: 's1', mode: 'pipe', overflow: 'block', keepSeconds: 60 } as const
    this.session = new ServerSession({ ...defaults, ...rest, limits: { ...DEFAULT_LIMITS, ...limits } }, 0)
  }

  /** Takes the effects of a call: what goes to clients, and the rest. */
  run(effects: readonly ServerEffect[]): void {
    for (const effect of effects) {
      if (effect.do === 'send') this.#heard.get(effect.connectionId)?.push(effect.data)
      else if (effect.do === 'sendOutput')
        this.#heard.get(effect.connectionId)?.push(packData(effect.stream, effect.bytes))
      else if (effect.do === 'close')
        this.#closed.set(effect.connectionId, { code: effect.code, reason: effect.reason })
      else this.#effects.push(effect)
    }
  }

  /** Effects on the process since the last call, without what was sent. */
  takeEffects(): readonly ServerEffect[] {
    return this.#effects.splice(0)
  }

  connect(rights: Partial<ConnectionRights> = {}): Peer {
    this.#connections += 1
    const connectionId = this.#connections
    this.#heard.set(connectionId, [])
    const all: ConnectionRights = {
      principal: 'p',
      authority: 'driver',
      dialect: 'v1',
      take: false,
      exec: true,
      ...rights,
    }
    this.run(this.session.connected(connectionId, all, { env: {}, cols: 80, rows: 24 }, this.nowMs))
    return new Peer(this, connectionId, all)
  }

  /** Connects and says hello. */
  attach(
    who: { identity?: number; hello?: Partial<Hello>; rights?: Partial<ConnectionRights>; role?: Role } = {},
  ): Peer {
    const peer = this.connect(who.rights)
    const role = who.role === undefined ? {} : { role: who.role }
    peer.hello({ identity: identityOf(who.identity ?? this.#connections), ...role, ...who.hello })
    return peer
  }

  /** Lets time pass, waking the session whenever it wants to be woken. */
  wait(ms: number): void {
    const untilMs = this.nowMs + ms
    for (let wakes = 0; ; wakes += 1) {
      const atMs = this.session.nextTickMs(this.nowMs)
      if (atMs === undefined || atMs > untilMs) break
      if (wakes > 10_000) throw new Error('the session wants to be woken again and again')
      this.nowMs = Math.max(this.nowMs, atMs)
      this.run(this.session.tick(this.nowMs))
    }
    this.nowMs = untilMs
  }

  output(content: string, stream: 'stdout' | 'stderr' = 'stdout'): void {
    this.run(this.session.output(stream, bytesOf(content), this.nowMs))
  }

  settle(bytes: number): void {
    this.run(this.session.inputSettled(bytes, this.nowMs))
  }

  exit(code = 0): void {
    this.run(this.session.ended({ code, signal: null, truncated: false }, this.nowMs))
  }

  /** Answers the oldest request for a screen with one at the end of the log. */
  render(attachment: string, exact = true): number {
    const at = this.session.log.end
    const data = bytesOf(`screen@${at}`)
    this.run(this.session.snapshotReady(attachment, { at, cols: 80, rows: 24, data, exact }, this.nowMs))
    return at
  }

  closedOf(connectionId: ConnectionId): { code: number; reason: string } | undefined {
    return this.#closed.get(connectionId)
  }

  takeHeard(connectionId: ConnectionId): WireMessage[] {
    return this.#heard.get(connectionId)?.splice(0) ?? []
  }
}

/** One connection, from the client's side. */
export class Peer {
  readonly connectionId: ConnectionId
  readonly #bench: Bench
  readonly #rights: ConnectionRights
  #isClosedHeard = false

  constructor(bench: Bench, connectionId: ConnectionId, rights: ConnectionRights) {
    this.#bench = bench
    this.connectionId = connectionId
    this.#rights = rights
  }

  get attachment(): Attachment | undefined {
    return this.#bench.session.attachments.byConnection(this.connectionId)
  }

  get id(): string {
    return this.attachment?.id ?? ''
  }

  hello(hello: Partial<Hello> = {}): void {
    const defaults = {
      version: 1,
      identity: identityOf(this.connectionId),
      resuming: false,
      received: 0,
      window: 1024 * 1024,
    }
    this.says({ type: 'hello', ...defaults, cols: 80, rows: 24, ...hello })
  }

  says(message: ClientMessage | PlainClientMessage): void {
    this.sendsRaw(encode(message))
  }

  sends(content: string): void {
    this.sendsRaw(bytesOf(content))
  }

  sendsRaw(data: WireMessage): void {
    this.#bench.run(this.#bench.session.received(this.connectionId, data, this.#bench.nowMs))
  }

  acks(output: number): void {
    this.says({ type: 'ack', output })
  }

  cut(): void {
    this.#bench.run(this.#bench.session.disconnected(this.connectionId, this.#bench.nowMs))
  }

  block(): void {
    this.#bench.session.blocked(this.connectionId)
  }

  drain(): void {
    this.#bench.run(this.#bench.session.drained(this.connectionId, this.#bench.nowMs))
  }

  /** Everything heard since the last call; with types, only messages of those. */
  hears(...types: Heard['type'][]): readonly Heard[] {
    const heard = this.#bench.takeHeard(this.connectionId).map((wire) => this.#decode(wire))
    const closed = this.#bench.closedOf(this.connectionId)
    if (closed !== undefined && !this.#isClosedHeard) {
      this.#isClosedHeard = true
      heard.push({ type: 'closed', ...closed })
    }
    return types.length === 0 ? heard : heard.filter(({ type }) => types.includes(type))
  }

  /** Output bytes among what was heard since the last call. */
  hearsOutput(): string {
    return this.hears('stdout', 'stderr')
      .map((heard) => ('text' in heard ? heard.text : ''))
      .join('')
  }

  /** Why the connection ended: the error's code and the close code. */
  refusal(): { error: string | undefined; close: number | undefined } {
    const heard = this.hears('error', 'closed')
    const error = heard.find((message) => message.type === 'error')
    const closed = heard.find((message) => message.type === 'closed')
    return { error: error?.code, close: closed?.code }
  }

  #decode(wire: WireMessage): Heard {
    const frame = this.#rights.dialect === 'plain' ? decodePlainServer(wire) : decodeServer(wire)
    if (frame === undefined) throw new Error(`a client cannot decode ${String(wire)}`)
    if (frame.kind === 'control') return frame.message
    return { type: frame.stream === 'snapshot' ? 'screen' : frame.stream, text: text(frame.payload) }
  }
}

export function identityOf(number: number): string {
  return number.toString(16).padStart(32, '0')
}
