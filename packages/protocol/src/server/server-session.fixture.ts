import type { ClientMessage, Hello, PlainClientMessage, Role } from '../client-frames.ts'
import { decodePlainServer, decodeServer, encode, type WireMessage } from '../codec.ts'
import { packData } from '../data-frame.ts'
import type { PlainServerMessage, ServerMessage } from '../server-frames.ts'
import type { Attachment } from './attachment.ts'
import type { ConnectionId, ServerEffect } from './effects.ts'
import type { ConnectionRights } from './connection-table.ts'
import { ServerSession } from './server-session.ts'
import { DEFAULT_LIMITS, type SessionLimits, type SessionOptions } from './session-options.ts'

/** What a client received: a control message, bytes of a stream as text, or the close of its connection. */
export type Received =
  | ServerMessage
  | PlainServerMessage
  | { readonly type: 'stdout' | 'stderr' | 'screen'; readonly text: string }
  | { readonly type: 'closed'; readonly code: number; readonly reason: string }

const text = (bytes: Uint8Array): string => new TextDecoder('latin1').decode(bytes)
const bytesOf = (content: string): Uint8Array => new TextEncoder().encode(content)

/** A server session with a clock. Its effects are stored by kind until a test takes them. */
export class SessionFixture {
  nowMs = 0
  readonly session: ServerSession
  readonly #received = new Map<ConnectionId, WireMessage[]>()
  readonly #closed = new Map<ConnectionId, { code: number; reason: string }>()
  #effects: ServerEffect[] = []
  #connections = 0

  constructor(options: Partial<Omit<SessionOptions, 'limits'>> & { limits?: Partial<SessionLimits> } = {}) {
    const { limits, ...rest } = options
    const defaults = { id: 's1', mode: 'pipe', overflow: 'block', keepSeconds: 60 } as const
    this.session = new ServerSession({ ...defaults, ...rest, limits: { ...DEFAULT_LIMITS, ...limits } }, 0)
  }

  /** Stores the effects of a call. */
  run(effects: readonly ServerEffect[]): void {
    for (const effect of effects) {
      if (effect.do === 'send') this.#received.get(effect.connectionId)?.push(effect.data)
      else if (effect.do === 'sendOutput')
        this.#received.get(effect.connectionId)?.push(packData(effect.stream, effect.bytes))
      else if (effect.do === 'close')
        this.#closed.set(effect.connectionId, { code: effect.code, reason: effect.reason })
      else this.#effects.push(effect)
    }
  }

  /** Effects since the last call, except for sent messages. */
  takeEffects(): readonly ServerEffect[] {
    return this.#effects.splice(0)
  }

  connect(rights: Partial<ConnectionRights> = {}): Peer {
    this.#connections += 1
    const connectionId = this.#connections
    this.#received.set(connectionId, [])
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

  /** Connects and sends a hello. */
  attach(
    who: { identity?: number; hello?: Partial<Hello>; rights?: Partial<ConnectionRights>; role?: Role } = {},
  ): Peer {
    const peer = this.connect(who.rights)
    const role = who.role === undefined ? {} : { role: who.role }
    peer.hello({ identity: identityOf(who.identity ?? this.#connections), ...role, ...who.hello })
    return peer
  }

  /** Advances the clock and calls `tick` whenever it is due. */
  wait(ms: number): void {
    const untilMs = this.nowMs + ms
    for (let wakes = 0; ; wakes += 1) {
      const atMs = this.session.nextTickMs(this.nowMs)
      if (atMs === undefined || atMs > untilMs) break
      if (wakes > 10_000) throw new Error('the session asks for tick without end')
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

  /** Answers a request for a snapshot with one at the end of the log. */
  render(attachment: string, exact = true): number {
    const at = this.session.log.end
    const data = bytesOf(`screen@${at}`)
    this.run(this.session.snapshotReady(attachment, { at, cols: 80, rows: 24, data, exact }, this.nowMs))
    return at
  }

  closedOf(connectionId: ConnectionId): { code: number; reason: string } | undefined {
    return this.#closed.get(connectionId)
  }

  takeReceived(connectionId: ConnectionId): WireMessage[] {
    return this.#received.get(connectionId)?.splice(0) ?? []
  }
}

/** One connection, seen from the client. */
export class Peer {
  readonly connectionId: ConnectionId
  readonly #fixture: SessionFixture
  readonly #rights: ConnectionRights
  #isCloseReported = false

  constructor(fixture: SessionFixture, connectionId: ConnectionId, rights: ConnectionRights) {
    this.#fixture = fixture
    this.connectionId = connectionId
    this.#rights = rights
  }

  get attachment(): Attachment | undefined {
    return this.#fixture.session.attachments.byConnection(this.connectionId)
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
    this.sendMessage({ type: 'hello', ...defaults, cols: 80, rows: 24, ...hello })
  }

  sendMessage(message: ClientMessage | PlainClientMessage): void {
    this.sendRaw(encode(message))
  }

  sendInput(content: string): void {
    this.sendRaw(bytesOf(content))
  }

  sendRaw(data: WireMessage): void {
    this.#fixture.run(this.#fixture.session.received(this.connectionId, data, this.#fixture.nowMs))
  }

  ack(output: number): void {
    this.sendMessage({ type: 'ack', output })
  }

  disconnect(): void {
    this.#fixture.run(this.#fixture.session.disconnected(this.connectionId, this.#fixture.nowMs))
  }

  block(): void {
    this.#fixture.session.blocked(this.connectionId)
  }

  drain(): void {
    this.#fixture.run(this.#fixture.session.drained(this.connectionId, this.#fixture.nowMs))
  }

  /** Everything received since the last call; with `types`, only messages of these. */
  received(...types: Received['type'][]): readonly Received[] {
    const received = this.#fixture.takeReceived(this.connectionId).map((wire) => this.#decode(wire))
    const closed = this.#fixture.closedOf(this.connectionId)
    if (closed !== undefined && !this.#isCloseReported) {
      this.#isCloseReported = true
      received.push({ type: 'closed', ...closed })
    }
    return types.length === 0 ? received : received.filter(({ type }) => types.includes(type))
  }

  /** Output received since the last call. */
  receivedOutput(): string {
    return this.received('stdout', 'stderr')
      .map((received) => ('text' in received ? received.text : ''))
      .join('')
  }

  /** The error code and close code that ended the connection. */
  refusal(): { error: string | undefined; close: number | undefined } {
    const received = this.received('error', 'closed')
    const error = received.find((message) => message.type === 'error')
    const closed = received.find((message) => message.type === 'closed')
    return { error: error?.code, close: closed?.code }
  }

  #decode(wire: WireMessage): Received {
    const frame = this.#rights.dialect === 'plain' ? decodePlainServer(wire) : decodeServer(wire)
    if (frame === undefined) throw new Error(`a client cannot decode ${String(wire)}`)
    if (frame.kind === 'control') return frame.message
    return { type: frame.stream === 'snapshot' ? 'screen' : frame.stream, text: text(frame.payload) }
  }
}

export function identityOf(number: number): string {
  return number.toString(16).padStart(32, '0')
}
