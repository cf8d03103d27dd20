import { raceTimeout } from '@sandwire/async'
import {
  type ConnectionId,
  decodeServer,
  encode,
  limits,
  type Role,
  type ServerMessage,
} from '@sandwire/protocol'
import type { RemoteScreen, RowRange, ScreenText } from '../../screen/screen-renderer.ts'
import type { SendOutcome, SessionConnection } from '../../sessions/connections.ts'
import type { SessionRunner } from '../../sessions/session-runner.ts'

/** Input of one message, and the pause after it, in which people can take control. */
const CHUNK_BYTES = 256
const CHUNK_MS = 5
/** Time to wait for a program to read its input. */
const SETTLE_MS = 5_000
/** Output on its way to the screen at which the session must wait, and at which it continues. */
const HIGH_BYTES = 1024 * 1024
const LOW_BYTES = 256 * 1024

type Presence = Extract<ServerMessage, { type: 'presence' }>

/** Why input was not sent. */
export type TypingRefusal =
  | { readonly kind: 'ended' }
  /** Another attachment drives. */
  | { readonly kind: 'driven'; readonly by: string }
  /** A person types what the agent must not see. */
  | { readonly kind: 'private' }
  /** The program reads a password. */
  | { readonly kind: 'secret' }

export interface TypingResult {
  /** Bytes that the session has accepted; no others reach the program. */
  readonly acceptedBytes: number
  readonly refusal: TypingRefusal | undefined
  /** The program has not read what was accepted. */
  readonly isUnread: boolean
  /** What the terminal said about the input, such as that a line was too long. */
  readonly warning: string | undefined
}

export interface AgentTerminalParts {
  readonly runner: SessionRunner
  readonly connection: ConnectionId
  readonly requestId: string
  /** Secret of the attachment: 32 hex digits. */
  readonly identity: string
  /** Account of the attachment. */
  readonly principal: string
  /** Name that others see. */
  readonly name: string
  readonly size: { readonly cols: number; readonly rows: number }
  readonly openScreen: (cols: number, rows: number) => RemoteScreen
  readonly now: () => number
}

/**
 * A coding agent's attachment to a session: a `sandwire.v1` client without a socket, and the screen that its output draws. Lease,
 * epochs, presence and private input are the session's, as for people.
 */
export class AgentTerminal {
  readonly #parts: AgentTerminalParts
  #screen: RemoteScreen
  #inFlight = 0
  #isBlocked = false
  #role: Role = 'viewer'
  #attachment = ''
  #presence: Presence | undefined
  #exit: { readonly code: number | null; readonly signal: string | null } | undefined
  #problem: string | undefined
  #warning: string | undefined
  #hasGap = false
  #isClosed = false
  #lastOutputMs: number
  /** Called once, at the next change. */
  #waiting: (() => void)[] = []

  constructor(parts: AgentTerminalParts) {
    const { runner, connection, size, openScreen, identity, principal, name, now } = parts
    this.#parts = parts
    this.#lastOutputMs = now()
    this.#screen = openScreen(size.cols, size.rows)
    runner.connected(
      connection,
      this.#connection(),
      {
        principal,
        authority: 'driver',
        dialect: 'v1',
        take: false,
        exec: true,
        acknowledgement: 'connection',
        roleWithoutLease: 'viewer',
        hasSilenceTimeout: false,
        name,
        isAgent: true,
      },
      { env: {}, ...size },
    )
    this.#send({
      type: 'hello',
      version: 1,
      identity,
      resuming: false,
      received: 0,
      window: limits.MAX_WINDOW_BYTES,
      ...size,
    })
  }

  get session(): string {
    return this.#parts.runner.session.id
  }

  get command(): string {
    return this.#parts.runner.command.argv[0]
  }

  get exit(): { readonly code: number | null; readonly signal: string | null } | undefined {
    return this.#exit
  }

  /** Why the program could not be started, or why the session closed the connection. */
  get problem(): string | undefined {
    return this.#problem
  }

  get hasEnded(): boolean {
    return this.#isClosed || this.#exit !== undefined
  }

  /** Who drives: the agent itself, nobody, or the name of another attachment. */
  get driver(): 'agent' | 'none' | { readonly name: string } {
    if (this.#role === 'driver') return 'agent'
    const { attachments } = this.#parts.runner.session
    const { holder } = attachments.lease
    if (holder === null) return 'none'
    return { name: attachments.byId(holder)?.name ?? '' }
  }

  get isInputPrivate(): boolean {
    return this.#parts.runner.session.attachments.isInputPrivate
  }

  get isReadingSecret(): boolean {
    return this.#parts.runner.isReadingSecret
  }

  /** True when the agent may type, or would be given control at once. */
  get canType(): boolean {
    const isHeldByOther = typeof this.driver === 'object'
    return !this.hasEnded && !isHeldByOther && !this.isInputPrivate && !this.isReadingSecret
  }

  /** Names of the others who are attached. */
  get others(): readonly string[] {
    return (this.#presence?.attachments ?? [])
      .filter(({ id, connected }) => connected && id !== this.#attachment)
      .map(({ name }) => name)
  }

  /** Time since the last output. */
  get quietMs(): number {
    return this.#parts.now() - this.#lastOutputMs
  }

  /** True once after output was left out of the screen. */
  takeOutputGap(): boolean {
    const had = this.#hasGap
    this.#hasGap = false
    return had
  }

  /** Undefined when the screen could not be rendered. */
  read(range: RowRange): Promise<ScreenText | undefined> {
    return this.#screen.read(range)
  }

  /** Resolves at the next output or change of state, after `ms` at the latest. */
  async changed(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.push(resolve)
    await raceTimeout(promise, Math.max(0, ms), undefined)
    this.#waiting = this.#waiting.filter((each) => each !== resolve)
  }

  /** Types as much as the session accepts, in pieces, so that it ends where another attachment takes control. */
  async type(bytes: Uint8Array, signal: AbortSignal): Promise<TypingResult> {
    this.#warning = undefined
    let acceptedBytes = 0
    let isUnread = false
    let refusal = this.#claim()
    while (refusal === undefined && !isUnread && !signal.aborted && acceptedBytes < bytes.byteLength) {
      const chunk = bytes.slice(acceptedBytes, acceptedBytes + CHUNK_BYTES)
      this.#parts.runner.received(this.#parts.connection, chunk)
      acceptedBytes += chunk.byteLength
      await Bun.sleep(CHUNK_MS)
      isUnread = !(await this.#isInputRead())
      if (acceptedBytes < bytes.byteLength) refusal = this.#claim()
    }
    return { acceptedBytes, refusal, isUnread, warning: this.#warning }
  }

  /** Asks the driver for control. */
  ask(): void {
    if (!this.hasEnded && this.#role !== 'driver') this.#send({ type: 'ask' })
  }

  /** Ends the session, and resolves when no process of it is left. If a person drives it, only the agent leaves. */
  async close(): Promise<void> {
    const isLeft = typeof this.driver === 'object' || this.isInputPrivate
    if (isLeft) this.#send({ type: 'detach' })
    else await this.#parts.runner.endAndWait()
    this.#isClosed = true
    this.#screen.close()
    this.#notify()
  }

  /** Why the agent cannot type now. Takes a lease that nobody holds. */
  #claim(): TypingRefusal | undefined {
    if (this.hasEnded) return { kind: 'ended' }
    if (this.isInputPrivate) return { kind: 'private' }
    if (this.driver === 'none') this.#send({ type: 'ask' })
    const { driver } = this
    if (driver !== 'agent') return { kind: 'driven', by: driver === 'none' ? '' : driver.name }
    return this.isReadingSecret ? { kind: 'secret' } : undefined
  }

  /** Waits until the program has read the input, or the agent no longer drives; false when the program does not read. */
  async #isInputRead(): Promise<boolean> {
    const { runner, connection, now } = this.#parts
    const untilMs = now() + SETTLE_MS
    while (runner.unsettledInput(connection) > 0 && this.#role === 'driver') {
      const leftMs = untilMs - now()
      if (leftMs <= 0) return false
      await this.changed(leftMs)
    }
    return true
  }

  #send(message: Parameters<typeof encode>[0]): void {
    const { runner, connection } = this.#parts
    runner.received(connection, encode(message))
  }

  #connection(): SessionConnection {
    return {
      requestId: this.#parts.requestId,
      send: (data) => {
        const frame = decodeServer(data)
        if (frame?.kind === 'control') this.#message(frame.message)
        this.#notify()
        return 'sent'
      },
      // The log changes its bytes after this returns.
      sendOutput: (_, bytes) => this.#output(bytes.slice()),
      close: () => this.#ended(),
      terminate: () => this.#ended(),
      inputSettled: () => this.#notify(),
    }
  }

  #output(bytes: Uint8Array): SendOutcome {
    const { byteLength } = bytes
    const screen = this.#screen
    this.#lastOutputMs = this.#parts.now()
    this.#inFlight += byteLength
    void screen.feed(bytes).then(() => this.#fed(byteLength))
    this.#notify()
    this.#isBlocked ||= this.#inFlight > HIGH_BYTES
    return this.#isBlocked ? 'full' : 'sent'
  }

  #fed(bytes: number): void {
    this.#inFlight -= bytes
    if (!this.#isBlocked || this.#inFlight > LOW_BYTES) return
    this.#isBlocked = false
    this.#parts.runner.drained(this.#parts.connection)
  }

  #message(message: ServerMessage): void {
    switch (message.type) {
      case 'welcome':
        this.#role = message.role
        this.#attachment = message.attachment
        return
      case 'role':
        this.#role = message.role
        return this.#send({ type: 'roleSeen', epoch: message.epoch })
      case 'presence':
        this.#presence = message
        return
      case 'resized':
        return this.#screen.resize(message.cols, message.rows)
      case 'gap':
        return this.#reset()
      case 'exit':
        this.#exit = { code: message.code, signal: message.signal }
        return
      case 'error':
        if (message.fatal || message.code !== 'line_too_long') this.#problem = message.message
        else this.#warning = message.message
        return
      case 'ack':
      case 'snapshot':
      case 'stdinClosed':
      case 'asked':
      case 'pong':
    }
  }

  /** Output is missing, and what the screen would show of it is unknown or private: begins with an empty one. */
  #reset(): void {
    const { cols, rows } = this.#parts.runner.session.resizes.current
    if (this.#isClosed) return
    this.#screen.close()
    this.#screen = this.#parts.openScreen(cols, rows)
    this.#hasGap = true
  }

  #ended(): void {
    this.#isClosed = true
    this.#notify()
  }

  #notify(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
