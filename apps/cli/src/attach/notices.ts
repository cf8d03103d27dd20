import type { AttachHandle } from '@sandwire/client'
import type { ClientStatus, Role } from '@sandwire/protocol'
import { isLarger } from './fit-screen.ts'
import type { LocalScreen } from './local-screen.ts'
import type { StatusLine } from './status-line.ts'
import { readTerminalSize } from './terminal-size.ts'
import type { RunOptions } from '../options/attach-options.ts'
import { printable } from '../text/printable.ts'

/** Show that the first connection is pending after this time. */
const CONNECTING_SHOWN_AFTER_MS = 1_000
/** Show that the connection is lost after this time. */
const LOST_SHOWN_AFTER_MS = 500
/** Interval of updates of the countdown. */
const COUNTDOWN_MS = 250
/** How long a notice is shown. */
const FLASH_MS = 3_000

const ROLE_TEXT: Readonly<Record<Role, string>> = {
  driver: 'you are the driver now',
  collaborator: 'you can type; another client is the driver',
  viewer: 'you are watching; another client is the driver',
}

/** The status line while there is no connection. */
export function describeOutage(
  status: Extract<ClientStatus, { kind: 'connecting' | 'reconnecting' }>,
  context: { host: string; detachHint: string; wasAttached: boolean; nowMs: number },
): string {
  const waitMs = status.kind === 'reconnecting' ? Math.max(0, status.atMs - context.nowMs) : 0
  const next = waitMs > 0 ? `reconnecting in ${Math.ceil(waitMs / 1000)} s` : 'reconnecting'
  if (context.wasAttached) return `sbx-stdio: connection lost, ${next} (${context.detachHint})`
  const reason = status.kind === 'reconnecting' ? `, ${printable(status.why)}` : ''
  return `sbx-stdio: connecting to ${context.host}${reason} …`
}

/** Shows the state of the connection on the status line. */
export class ConnectionNotices implements Disposable {
  readonly #handle: AttachHandle
  readonly #line: StatusLine
  readonly #context: { readonly host: string; readonly detachHint: () => string; readonly role: Role }
  readonly #unsubscribe: () => void
  readonly #timer: ReturnType<typeof setInterval>
  #lostMs: number | undefined = performance.now()
  #role: Role | undefined
  #isOutageShown = false

  constructor(
    handle: AttachHandle,
    line: StatusLine,
    context: { host: string; detachHint: () => string; role: Role },
  ) {
    this.#handle = handle
    this.#line = line
    this.#context = context
    this.#unsubscribe = handle.status.subscribe((status) => this.#changed(status))
    this.#timer = setInterval(() => this.#tick(), COUNTDOWN_MS)
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
    this.#unsubscribe()
  }

  #changed(status: ClientStatus): void {
    if (status.kind === 'reconnecting') this.#lostMs ??= performance.now()
    if (status.kind !== 'attached') return
    this.#lostMs = undefined
    if (this.#isOutageShown) this.#line.clear()
    if (this.#isOutageShown && this.#role !== undefined) this.#line.flash('sbx-stdio: reconnected', FLASH_MS)
    this.#isOutageShown = false
    const expected = this.#role ?? this.#context.role
    this.#role = status.role
    if (status.role !== expected) this.#line.flash(`sbx-stdio: ${ROLE_TEXT[status.role]}`, FLASH_MS)
  }

  #tick(): void {
    const status = this.#handle.status.get()
    if (
      this.#lostMs === undefined ||
      (status.kind !== 'connecting' && status.kind !== 'reconnecting' && status.kind !== 'attached')
    )
      return
    const wasAttached = this.#role !== undefined
    const nowMs = performance.now()
    if (nowMs - this.#lostMs < (wasAttached ? LOST_SHOWN_AFTER_MS : CONNECTING_SHOWN_AFTER_MS)) return
    if (status.kind === 'attached') return
    this.#isOutageShown = true
    const { host, detachHint } = this.#context
    this.#line.show(describeOutage(status, { host, detachHint: detachHint(), wasAttached, nowMs }))
  }
}

/** Shows what happens to the session besides its output. */
export class SessionNotices {
  readonly #screen: LocalScreen
  readonly #options: Pick<RunOptions, 'isQuiet' | 'escape'>
  readonly #role: () => AttachHandle['role']
  #isRefusalShown = false

  constructor(
    screen: LocalScreen,
    options: Pick<RunOptions, 'isQuiet' | 'escape'>,
    role: () => AttachHandle['role'],
  ) {
    this.#screen = screen
    this.#options = options
    this.#role = role
  }

  /** Shows a notice: on the status line of a terminal, otherwise on stderr. */
  show(text: string, ms = FLASH_MS): void {
    if (this.#screen.hasRawInput) this.flash(text, ms)
    else if (!this.#options.isQuiet) void this.#screen.print(`sbx-stdio: ${printable(text)}`)
  }

  /** Shows a notice for a while; terminals only. */
  flash(text: string, ms = FLASH_MS): void {
    if (this.#screen.hasRawInput) this.#screen.statusLine.flash(`sbx-stdio: ${printable(text)}`, ms)
  }

  outputLost(bytes: number): void {
    this.show(`${bytes} bytes of output are lost: the log was full`)
  }

  /** The driver's window may be larger than this one. */
  resized(cols: number, rows: number): void {
    const own = readTerminalSize()
    if (this.#role() === 'driver' || !isLarger({ cols, rows }, own)) return
    if (this.#screen.hasRawInput)
      this.show(`the session is ${cols}x${rows}, this terminal is ${own.cols}x${own.rows}`)
  }

  /** Input of a viewer is dropped; shown once. */
  inputRefused(): void {
    if (this.#isRefusalShown) return
    this.#isRefusalShown = true
    this.show(`read-only: you are watching (${this.detachHint()})`)
  }

  detachHint(): string {
    if (!this.#screen.hasRawInput) return 'Ctrl+C twice to detach'
    const key = this.#options.escape?.label ?? (this.#role() === 'viewer' ? 'Ctrl+C' : 'SIGTERM')
    return `${key} to detach`
  }
}
