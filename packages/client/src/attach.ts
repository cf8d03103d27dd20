import { toHex } from '@sandwire/bytes'
import {
  type ClientEffect,
  ClientSession,
  type ClientStatus,
  decodeServer,
  EffectQueue,
  type Exit,
  limits,
  type Role,
  SandwireError,
} from '@sandwire/protocol'
import { Alarm } from './alarm.ts'
import type { AttachHandle, AttachOptions, SessionDetails } from './attach-options.ts'
import { Consumption } from './consumption.ts'
import { Connection } from './connection.ts'
import { reportError } from './report-error.ts'
import { createStore, type Store } from './store.ts'
import { withoutTerminalReplies } from './terminal-replies.ts'

const DEFAULT_CONNECT_FOR_MS = 10_000
const DEFAULT_RETRY_FOR_MS = 10 * 60_000

function randomHex(bytes: number): string {
  return toHex(crypto.getRandomValues(new Uint8Array(bytes)))
}

/** Starts or joins a process and stays attached to it, across lost connections, until it ends. */
export function attach(options: AttachOptions): AttachHandle {
  return new Attachment(options)
}

/** Drives a client session with a WebSocket and one timer. */
class Attachment implements AttachHandle {
  readonly exit: Promise<Exit>
  readonly closed: Promise<void>
  readonly #options: AttachOptions
  readonly #session: ClientSession
  readonly #createId = randomHex(16)
  readonly #reportError = (error: unknown): void => (this.#options.onCallbackError ?? reportError)(error)
  readonly #status = createStore<ClientStatus>({ kind: 'connecting', attempt: 1 }, this.#reportError)
  readonly #roundTripMs = createStore<number | undefined>(undefined, this.#reportError)
  readonly #isSilent = createStore(false, this.#reportError)
  readonly #consumption: Consumption
  readonly #effects = new EffectQueue<ClientEffect>(
    (effect) => this.#perform(effect),
    () => this.#alarm.set(this.#session.nextTickMs(), this.#now()),
  )
  readonly #alarm = new Alarm(() => this.#run(this.#session.tick(this.#now())))
  #details: SessionDetails | undefined
  #current: { readonly attempt: number; readonly connection: Connection } | undefined
  #waiting: (() => void)[] = []
  readonly #settleExit: { resolve: (exit: Exit) => void; reject: (error: SandwireError) => void }
  readonly #resolveClosed: () => void

  constructor(options: AttachOptions) {
    this.#options = options
    const settled = Promise.withResolvers<Exit>()
    this.exit = settled.promise
    this.#settleExit = settled
    const closed = Promise.withResolvers<void>()
    this.closed = closed.promise
    this.#resolveClosed = closed.resolve
    // A caller that only watches the status must not crash on an unhandled rejection.
    this.exit.catch(() => {})
    this.#session = new ClientSession({
      identity: randomHex(16),
      windowBytes: options.windowBytes ?? limits.MAX_WINDOW_BYTES,
      cols: options.cols ?? 80,
      rows: options.rows ?? 24,
      connectForMs: options.connectForMs ?? DEFAULT_CONNECT_FOR_MS,
      retryForMs: options.retryForMs ?? DEFAULT_RETRY_FOR_MS,
      ...(options.name === undefined ? {} : { name: options.name }),
      ...(options.env === undefined ? {} : { env: options.env }),
      ...(options.heartbeatMs === undefined ? {} : { heartbeatMs: options.heartbeatMs }),
    })
    this.#session.jitter = () => Math.random()
    this.#consumption = new Consumption((end) => this.#run(this.#session.consumed(end, this.#now())))
    options.signal?.addEventListener('abort', this.#aborted, { once: true })
    this.#run(this.#session.start(this.#now()))
    if (options.signal?.aborted === true) this.detach()
  }

  get status(): Store<ClientStatus> {
    return this.#status
  }

  get roundTripMs(): Store<number | undefined> {
    return this.#roundTripMs
  }

  get isSilent(): Store<boolean> {
    return this.#isSilent
  }

  get role(): Role {
    return this.#session.role
  }

  get session(): string | undefined {
    return this.#session.session
  }

  get details(): SessionDetails | undefined {
    return this.#details
  }

  async write(bytes: Uint8Array): Promise<void> {
    while (!this.#session.canWrite && !this.#isEnded())
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    if (this.#isEnded()) return
    const input = this.#session.role === 'collaborator' ? withoutTerminalReplies(bytes) : bytes
    this.#run(this.#session.write(input))
  }

  eof(): void {
    this.#run(this.#session.control({ type: 'eof' }))
  }

  resize(cols: number, rows: number): void {
    const clamp = (cells: number): number => Math.min(limits.MAX_CELLS, Math.max(1, Math.trunc(cells)))
    this.#run(this.#session.control({ type: 'resize', cols: clamp(cols), rows: clamp(rows) }))
  }

  signal(name: string): void {
    this.#run(this.#session.control({ type: 'signal', signal: name }))
  }

  take(): void {
    this.#run(this.#session.lease({ type: 'take' }))
  }

  ask(): void {
    this.#run(this.#session.lease({ type: 'ask' }))
  }

  give(to: string): void {
    this.#run(this.#session.lease({ type: 'give', to }))
  }

  setPrivate(isOn: boolean): void {
    this.#run(this.#session.lease({ type: 'private', on: isOn }))
  }

  probe(withinMs: number): void {
    this.#run(this.#session.probe(withinMs, this.#now()))
  }

  detach(): void {
    this.#run(this.#session.detach())
  }

  readonly #aborted = (): void => this.detach()

  #isEnded(): boolean {
    const { kind } = this.#status.get()
    return kind === 'exited' || kind === 'failed' || kind === 'detached'
  }

  #now(): number {
    return performance.now()
  }

  #run(effects: readonly ClientEffect[]): void {
    this.#effects.run(effects)
  }

  #perform(effect: ClientEffect): void {
    switch (effect.do) {
      case 'connect':
        this.#connect(effect.attempt, effect.session)
        return
      case 'send':
        this.#connectionOf(effect.attempt)?.send(effect.data)
        return
      case 'close':
        this.#connectionOf(effect.attempt)?.close()
        return
      case 'output':
        this.#deliver(effect.end, (done) => this.#options.onOutput(effect.stream, effect.bytes, done))
        return
      case 'snapshot':
        this.#deliverScreen(effect)
        return
      case 'gap':
        this.#callBack(() => this.#options.onGap?.(effect.from, effect.to))
        return
      case 'resized':
        this.#callBack(() => this.#options.onResized?.(effect.cols, effect.rows))
        return
      case 'writable':
        this.#release()
        return
      case 'inputLost':
        this.#callBack(() => this.#options.onInputLost?.(effect.bytes, effect.why))
        return
      case 'presence':
        this.#callBack(() => this.#options.onPresence?.(effect.presence))
        return
      case 'asked':
        this.#callBack(() => this.#options.onAsked?.(effect.by))
        return
      case 'warning':
        this.#callBack(() => this.#options.onWarning?.(effect.code, effect.message, effect.stopReason))
        return
      case 'roundTrip':
        this.#roundTripMs.set(effect.ms)
        return
      case 'silence':
        this.#isSilent.set(effect.isSilent)
        return
      case 'status':
        this.#changeStatus(effect.status)
        return
    }
  }

  /** Calls a callback of the caller; what it throws does not affect the attachment. */
  #callBack(call: () => void): void {
    try {
      call()
    } catch (error) {
      this.#reportError(error)
    }
  }

  #deliverScreen(effect: Extract<ClientEffect, { do: 'snapshot' }>): void {
    const { onScreen } = this.#options
    if (onScreen === undefined) this.#consumption.add(effect.at)()
    else this.#deliver(effect.at, (done) => onScreen(effect, done))
  }

  /** Passes bytes to the consumer and acknowledges them as the options say. */
  #deliver(end: number, deliver: (done: () => void) => void | Promise<void>): void {
    const done = this.#consumption.add(end)
    let returned: void | Promise<void>
    try {
      returned = deliver(done)
    } catch (error) {
      // A consumer that fails has had these bytes all the same, and the stream continues.
      this.#reportError(error)
      done()
      return
    }
    if (this.#options.acknowledge === 'manual') {
      if (returned instanceof Promise) void returned.catch(this.#reportError)
    } else if (returned instanceof Promise) void returned.catch(this.#reportError).finally(done)
    else done()
  }

  #changeStatus(status: ClientStatus): void {
    this.#status.set(status)
    if (status.kind === 'exited') this.#settleExit.resolve(status.exit)
    if (status.kind === 'failed') this.#settleExit.reject(status.error)
    if (status.kind === 'detached') this.#settleExit.reject(new SandwireError('link_lost', 'Detached'))
    if (!this.#isEnded()) return
    this.#options.signal?.removeEventListener('abort', this.#aborted)
    this.#release()
    this.#closeIfIdle()
  }

  /** Stores the session details of a welcome; returns whether the message was one. */
  #readWelcome(data: string | Uint8Array): boolean {
    const frame = decodeServer(data)
    if (frame === undefined || frame.kind === 'data' || frame.message.type !== 'welcome') return false
    this.#details = frame.message
    return true
  }

  #closeIfIdle(): void {
    if (this.#isEnded() && this.#current?.connection.hasSocket !== true) this.#resolveClosed()
  }

  #release(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resume of waiting) resume()
  }

  #connectionOf(attempt: number): Connection | undefined {
    return this.#current?.attempt === attempt ? this.#current.connection : undefined
  }

  #connect(attempt: number, session: string | undefined): void {
    let isWelcomed = false
    const identity = { createId: this.#createId, session }
    const connection = new Connection(this.#options, identity, {
      opened: () => this.#run(this.#session.opened(attempt, this.#now())),
      message: (data) => {
        isWelcomed ||= this.#readWelcome(data)
        this.#run(this.#session.receive(attempt, data, this.#now()))
      },
      closed: () => this.#closeIfIdle(),
      lost: (reason) => this.#run(this.#session.closed(attempt, reason, this.#now())),
      isWanted: () => this.#current?.connection === connection && !this.#isEnded(),
    })
    this.#current = { attempt, connection }
    void connection.connect()
  }
}
