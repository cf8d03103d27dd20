import type { AttachHandle } from '@sandwire/client'
import type { ClientStatus, Role } from '@sandwire/protocol'
import { isLarger } from './fit-screen.ts'
import type { LocalScreen } from './local-screen.ts'
import type { StatusLine } from './status-line.ts'
import { readWindowSize } from './window-size.ts'
import type { RunOptions } from '../options/attach-options.ts'
import { printable } from '../text/printable.ts'

/** A first connection that takes longer is worth a word. */
const CONNECTING_SHOWN_AFTER_MS = 1_000
/** A cut that heals sooner is not worth one. */
const LOST_SHOWN_AFTER_MS = 500
/** How often the countdown is looked at. */
const COUNTDOWN_MS = 250
/** How long a remark stays. */
export const FLASH_MS = 3_000

const ROLE_TEXT: Readonly<Record<Role, string>> = {
  driver: 'you drive now',
  collaborator: 'you may type, somebody else drives',
  viewer: 'you are watching, somebody else drives',
}

/** What the line says while there is no connection. */
export function describeOutage(
  status: Extract<ClientStatus, { is: 'connecting' | 'reconnecting' }>,
  context: { host: string; leave: string; wasAttached: boolean; nowMs: number },
): string {
  const waitMs = status.is === 'reconnecting' ? Math.max(0, status.atMs - context.nowMs) : 0
  const next = waitMs > 0 ? `trying again in ${Math.ceil(waitMs / 1000)} s` : 'trying'
  if (context.wasAttached) return `sbx-stdio: link lost, ${next} (${context.leave})`
  const why = status.is === 'reconnecting' ? `, ${printable(status.why)}` : ''
  return `sbx-stdio: connecting to ${context.host}${why} …`
}

/** Tells on the status line how the connection fares. */
export class ConnectionNotices implements Disposable {
  readonly #handle: AttachHandle
  readonly #line: StatusLine
  readonly #context: { readonly host: string; readonly leave: () => string; readonly role: Role }
  readonly #unsubscribe: () => void
  readonly #timer: ReturnType<typeof setInterval>
  #lostMs: number | undefined = performance.now()
  #role: Role | undefined
  #isOutageShown = false

  constructor(
    handle: AttachHandle,
    line: StatusLine,
    context: { host: string; leave: () => string; role: Role },
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
    if (status.is === 'reconnecting') this.#lostMs ??= performance.now()
    if (status.is !== 'attached') return
    this.#lostMs = undefined
    if (this.#isOutageShown) this.#line.clear()
    if (this.#isOutageShown && this.#role !== undefined) this.#line.flash('sbx-stdio: reattached', FLASH_MS)
    this.#isOutageShown = false
    const expected = this.#role ?? this.#context.role
    this.#role = status.role
    if (status.role !== expected) this.#line.flash(`sbx-stdio: ${ROLE_TEXT[status.role]}`, FLASH_MS)
  }

  #tick(): void {
    const status = this.#handle.status.get()
    if (
      this.#lostMs === undefined ||
      (status.is !== 'connecting' && status.is !== 'reconnecting' && status.is !== 'attached')
    )
      return
    const wasAttached = this.#role !== undefined
    const nowMs = performance.now()
    if (nowMs - this.#lostMs < (wasAttached ? LOST_SHOWN_AFTER_MS : CONNECTING_SHOWN_AFTER_MS)) return
    if (status.is === 'attached') return
    this.#isOutageShown = true
    const { host, leave } = this.#context
    this.#line.show(describeOutage(status, { host, leave: leave(), wasAttached, nowMs }))
  }
}

/** Tells whoever sits here what happens to a session besides its output. */
export class SessionNotices {
  readonly #screen: LocalScreen
  readonly #options: Pick<RunOptions, 'isQuiet' | 'escape'>
  readonly #role: () => AttachHandle['role']
  #isRefusalTold = false

  constructor(
    screen: LocalScreen,
    options: Pick<RunOptions, 'isQuiet' | 'escape'>,
    role: () => AttachHandle['role'],
  ) {
    this.#screen = screen
    this.#options = options
    this.#role = role
  }

  say(text: string): void {
    if (this.#screen.hasKeys) this.flash(text)
    else if (!this.#options.isQuiet) void this.#screen.say(`sbx-stdio: ${printable(text)}`)
  }

  /** For a terminal alone, where it goes away again. */
  flash(text: string): void {
    if (this.#screen.hasKeys) this.#screen.line.flash(`sbx-stdio: ${printable(text)}`, FLASH_MS)
  }

  lost(bytes: number): void {
    this.say(`${bytes} bytes of output are lost: nobody read them in time`)
  }

  /** Somebody else's window may be larger than this one. */
  resized(cols: number, rows: number): void {
    const own = readWindowSize()
    if (this.#role() === 'driver' || !isLarger({ cols, rows }, own)) return
    if (this.#screen.hasKeys)
      this.say(`the session is ${cols}x${rows}, this terminal ${own.cols}x${own.rows}`)
  }

  /** What is typed goes nowhere; said once. */
  refused(): void {
    if (this.#isRefusalTold) return
    this.#isRefusalTold = true
    this.say(`read-only, you are watching (${this.detachHint()})`)
  }

  detachHint(): string {
    if (!this.#screen.hasKeys) return 'Ctrl+C twice leaves'
    const key = this.#options.escape?.label ?? (this.#role() === 'viewer' ? 'Ctrl+C' : 'SIGTERM')
    return `${key} leaves`
  }
}
