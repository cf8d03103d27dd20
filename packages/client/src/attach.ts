import {
  type ClientEffect,
  ClientSession,
  type ClientStatus,
  type Exit,
  limits,
  type OutputStream,
  type Role,
  SandwireError,
  type ServerMessage,
  SUBPROTOCOL,
} from '@sandwire/protocol'
import { type AttachRequest, attachUrl } from './attach-url.ts'
import { Consumption } from './consumption.ts'
import { explainRefusal, reasonOfClose, type RefusalReason } from './refusal.ts'
import { type OpenSocket, openWebSocket, type Socket } from './socket.ts'
import { createStore, type Store } from './store.ts'
import { withoutTerminalReplies } from './terminal-replies.ts'

type Presence = Extract<ServerMessage, { type: 'presence' }>

/** A rendered screen to start from. */
export interface Screen {
  readonly cols: number
  readonly rows: number
  readonly exact: boolean
  readonly bytes: Uint8Array
}

export interface AttachOptions {
  /** Address of the attach route, `http(s):` or `ws(s):`. */
  readonly url: string | URL
  readonly request: AttachRequest
  /** Credentials for each upgrade, asked for anew every time. Headers work outside browsers, protocols everywhere. */
  readonly credentials?: () => Promise<{ headers?: Readonly<Record<string, string>>; protocols?: readonly string[] }>
  readonly cols?: number
  readonly rows?: number
  /** Environment for a process that this attachment starts. */
  readonly env?: Readonly<Record<string, string>>
  /** Label shown to others in the session. */
  readonly name?: string
  /**
   * Output, in order. The bytes count as consumed when the returned promise resolves, when `done` is called if the
   * function declares it, and else at once. Until then they count against the window and hold the process back.
   */
  readonly onOutput: (stream: OutputStream, bytes: Uint8Array, done: () => void) => void | Promise<void>
  /** A screen to draw instead of what came before; the same rules as for output. */
  readonly onScreen?: (screen: Screen, done: () => void) => void | Promise<void>
  /** Output from..to is lost for this attachment. */
  readonly onGap?: (from: number, to: number) => void
  readonly onResized?: (cols: number, rows: number) => void
  readonly onPresence?: (presence: Presence) => void
  /** Somebody asks this driver to hand over. */
  readonly onAsked?: (by: string) => void
  /** A fault that does not end the attachment, such as a line too long for the terminal. */
  readonly onWarning?: (code: string, message: string) => void
  /** Input that will never be delivered, because the role or the process's stdin is gone. */
  readonly onInputLost?: (bytes: number, why: 'role' | 'stdinClosed') => void
  /** Most output bytes in flight. */
  readonly windowBytes?: number
  /** How long to try before the first welcome. */
  readonly connectForMs?: number
  /** How long to try to come back after a cut. */
  readonly retryForMs?: number
  /** How often a silent connection is asked whether it is alive; for tests of dead links. */
  readonly heartbeatMs?: number
  /** Detaches when aborted. */
  readonly signal?: AbortSignal
  readonly openSocket?: OpenSocket
}

/** A running attachment. */
export interface AttachHandle {
  readonly status: Store<ClientStatus>
  readonly role: Role
  /** Id of the session, once known. */
  readonly session: string | undefined
  /** Last measured round trip. */
  readonly roundTripMs: Store<number | undefined>
  /** Resolves when the bytes are accepted for delivery; waits while the process does not take its input. */
  write(bytes: Uint8Array): Promise<void>
  /** Ends the input: closes a pipe, types the end-of-file character on a terminal. */
  eof(): void
  resize(cols: number, rows: number): void
  signal(name: string): void
  take(): void
  ask(): void
  give(to: string): void
  /** Leaves; the session lives on for its keep. */
  detach(): void
  /** Resolves with the process's exit, after its last byte was consumed; rejects when the attachment fails or is detached. */
  readonly exit: Promise<Exit>
}

const DEFAULT_CONNECT_FOR_MS = 10_000
const DEFAULT_RETRY_FOR_MS = 10 * 60_000
const DETACH_CLOSE = 1000

function randomHex(bytes: number): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Attaches to a process: starts or joins it, and stays attached across cuts until it ends. */
export function attach(options: AttachOptions): AttachHandle {
  return new Attachment(options)
}

/** Drives a client session with a WebSocket and one timer. */
class Attachment implements AttachHandle {
  readonly exit: Promise<Exit>
  readonly #options: AttachOptions
  readonly #session: ClientSession
  readonly #createId = randomHex(16)
  readonly #status = createStore<ClientStatus>({ is: 'connecting', attempt: 1 })
  readonly #roundTripMs = createStore<number | undefined>(undefined)
  readonly #consumption: Consumption
  #socket: { attempt: number; socket: Socket | undefined; isOpen: boolean } | undefined
  #timer: { id: ReturnType<typeof setTimeout>; atMs: number } | undefined
  #waiting: (() => void)[] = []
  #settleExit: { resolve: (exit: Exit) => void; reject: (error: SandwireError) => void }

  constructor(options: AttachOptions) {
    this.#options = options
    const settled = Promise.withResolvers<Exit>()
    this.exit = settled.promise
    this.#settleExit = settled
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
    options.signal?.addEventListener('abort', () => this.detach(), { once: true })
    this.#run(this.#session.start(this.#now()))
  }

  get status(): Store<ClientStatus> {
    return this.#status
  }

  get roundTripMs(): Store<number | undefined> {
    return this.#roundTripMs
  }

  get role(): Role {
    return this.#session.role
  }

  get session(): string | undefined {
    return this.#session.session
  }

  async write(bytes: Uint8Array): Promise<void> {
    while (!this.#session.canWrite && !this.#isOver()) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    if (this.#isOver()) return
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

  detach(): void {
    this.#run(this.#session.detach())
  }

  #isOver(): boolean {
    const { is } = this.#status.get()
    return is === 'exited' || is === 'failed' || is === 'detached'
  }

  #now(): number {
    return performance.now()
  }

  #run(effects: readonly ClientEffect[]): void {
    for (const effect of effects) this.#perform(effect)
    this.#arm()
  }

  #perform(effect: ClientEffect): void {
    switch (effect.do) {
      case 'connect':
        void this.#connect(effect.attempt, effect.session)
        return
      case 'send':
        if (this.#socket?.attempt === effect.attempt) this.#socket.socket?.send(effect.data)
        return
      case 'close':
        if (this.#socket?.attempt === effect.attempt) this.#socket.socket?.close(DETACH_CLOSE, '')
        return
      case 'output':
        this.#consume(effect.end, this.#options.onOutput.length > 2, (done) => this.#options.onOutput(effect.stream, effect.bytes, done))
        return
      case 'snapshot':
        this.#consume(effect.at, (this.#options.onScreen?.length ?? 0) > 1, (done) => this.#options.onScreen?.(effect, done))
        return
      case 'gap':
        this.#options.onGap?.(effect.from, effect.to)
        return
      case 'resized':
        this.#options.onResized?.(effect.cols, effect.rows)
        return
      case 'writable':
        this.#release()
        return
      case 'inputLost':
        this.#options.onInputLost?.(effect.bytes, effect.why)
        return
      case 'presence':
        this.#options.onPresence?.(effect.presence)
        return
      case 'asked':
        this.#options.onAsked?.(effect.by)
        return
      case 'warning':
        this.#options.onWarning?.(effect.code, effect.message)
        return
      case 'roundTrip':
        this.#roundTripMs.set(effect.ms)
        return
      case 'status':
        this.#changeStatus(effect.status)
        return
    }
  }

  /** Hands a chunk to the consumer and notices when it is done, whichever way it says so. */
  #consume(end: number, takesDone: boolean, deliver: (done: () => void) => void | Promise<void>): void {
    const done = this.#consumption.add(end)
    const returned = deliver(done)
    if (returned instanceof Promise) returned.then(done, done)
    else if (!takesDone) done()
  }

  #changeStatus(status: ClientStatus): void {
    this.#status.set(status)
    if (status.is === 'exited') this.#settleExit.resolve(status.exit)
    if (status.is === 'failed') this.#settleExit.reject(status.error)
    if (status.is === 'detached') this.#settleExit.reject(new SandwireError('link_lost', 'Detached'))
    if (this.#isOver()) this.#release()
  }

  #release(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resume of waiting) resume()
  }

  async #connect(attempt: number, session: string | undefined): Promise<void> {
    const own: { attempt: number; socket: Socket | undefined; isOpen: boolean } = { attempt, socket: undefined, isOpen: false }
    this.#socket = own
    const url = attachUrl(this.#options.url, this.#options.request, { createId: this.#createId, session })
    try {
      const credentials = await this.#options.credentials?.()
      if (this.#socket !== own || this.#isOver()) return
      const headers = credentials?.headers ?? {}
      const protocols = [SUBPROTOCOL, ...(credentials?.protocols ?? [])]
      const open = this.#options.openSocket ?? openWebSocket
      own.socket = open({ url, protocols, headers }, {
        opened: () => {
          own.isOpen = true
          this.#run(this.#session.opened(attempt, this.#now()))
        },
        message: (data) => this.#run(this.#session.receive(attempt, data, this.#now())),
        closed: (code, reason) => void this.#closed(own, { url, headers }, reasonOfClose(code, reason)),
      })
    } catch (error) {
      const reason = SandwireError.from(error)
      this.#run(this.#session.closed(attempt, { code: reason.code, message: reason.message }, this.#now()))
    }
  }

  async #closed(
    own: { attempt: number; isOpen: boolean },
    request: { url: URL; headers: Readonly<Record<string, string>> },
    told: RefusalReason | undefined,
  ): Promise<void> {
    const reason = told ?? (own.isOpen ? undefined : await explainRefusal(request, fetch))
    this.#run(this.#session.closed(own.attempt, reason, this.#now()))
  }

  #arm(): void {
    const atMs = this.#session.nextTickMs()
    if (this.#timer?.atMs === atMs) return
    if (this.#timer !== undefined) clearTimeout(this.#timer.id)
    this.#timer = undefined
    if (atMs === undefined) return
    const id = setTimeout(() => {
      this.#timer = undefined
      this.#run(this.#session.tick(this.#now()))
    }, Math.max(0, Math.ceil(atMs - this.#now())))
    this.#timer = { id, atMs }
  }
}
