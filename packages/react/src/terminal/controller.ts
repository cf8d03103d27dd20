import { attach, type AttachHandle, type AttachRequest, createStore, type Store } from '@sandwire/client'
import type { ClientStatus, Role, ServerMessage, StopReason } from '@sandwire/protocol'
import type { Appearance } from './appearance.ts'
import { type AskBeforePaste, checkPaste, preparePaste, type RiskyPaste } from './clipboard.ts'
import type { FileLocation } from './file-links.ts'
import { InputQueue } from './input-queue.ts'
import { isLeaseFree, LeaseOnInput } from './lease-on-input.ts'
import { confirmInBrowser, type SuspiciousLink } from './links.ts'
import { watchNetwork } from './network-watch.ts'
import { OrderedScreen } from './ordered-screen.ts'
import { printable } from './printable.ts'
import { type Size, Surface } from './surface.ts'
import { type GetTicket, ticketProtocol } from './ticket-protocol.ts'

type Presence = Extract<ServerMessage, { type: 'presence' }>

/**
 * Options of a terminal. Those that may be undefined are read on every use, so that a getter can return the current
 * value.
 */
export interface TerminalOptions {
  /** URL of the server. */
  readonly url: string | URL
  /** What to start or join. */
  readonly request: AttachRequest
  /** Returns a fresh ticket for each connection; without it, the server must allow unauthenticated access. */
  readonly getTicket?: GetTicket | undefined
  readonly appearance?: Partial<Appearance>
  /** Size until the element has one: the last known size, for a restored terminal that is not visible. */
  readonly size?: Size
  /** Programs may write to the clipboard (OSC 52). They can never read it. */
  readonly allowsClipboardWrite?: boolean | undefined
  readonly copiesOnSelect?: boolean | undefined
  /** When `confirmPaste` is called for several lines; default: always. */
  readonly asksBeforePaste?: AskBeforePaste | undefined
  /** Confirms a paste; without it, such pastes are dropped. */
  readonly confirmPaste?: ((paste: RiskyPaste) => Promise<boolean>) | undefined
  /** Confirms a link whose text and target differ; default: the browser's own dialog. */
  readonly confirmLink?: ((link: SuspiciousLink) => Promise<boolean>) | undefined
  /** A path in the output was clicked with Ctrl or Cmd, or tapped. */
  readonly onOpenFile?: ((location: FileLocation) => void) | undefined
  readonly onBell?: (() => void) | undefined
}

/** State of a terminal, besides its screen. */
export interface TerminalState {
  readonly status: ClientStatus
  readonly role: Role | undefined
  /** The highest role that this attachment may have. */
  readonly authority: Role | undefined
  readonly session: string | undefined
  /** Id of this attachment in `presence`. */
  readonly attachment: string | undefined
  readonly title: string
  readonly presence: Presence | undefined
  /** The attachment that requests control from this one. */
  readonly requestedBy: string | undefined
  readonly cols: number
  readonly rows: number
  /** The server has not responded for a few seconds. */
  readonly isSilent: boolean
  /** The server announced that the sandbox stops. */
  readonly isStopping: boolean
  /** Why the sandbox stops, if the server said so. */
  readonly stopReason: StopReason | undefined
  /** A message that does not end the session. */
  readonly notice: string | undefined
}

const INITIAL_STATE: TerminalState = {
  status: {
    kind: 'connecting',
    attempt: 1,
  },
  role: undefined,
  authority: undefined,
  session: undefined,
  attachment: undefined,
  title: '',
  presence: undefined,
  requestedBy: undefined,
  cols: 80,
  rows: 24,
  isSilent: false,
  isStopping: false,
  stopReason: undefined,
  notice: undefined,
}

function isPane({ pane }: AttachRequest): boolean {
  return pane !== undefined
}

/** Environment of the started program. */
const TERMINAL_ENV = { TERM: 'xterm-256color', COLORTERM: 'truecolor' }

/**
 * One terminal: screen, input, and the attachment between them. Independent of any framework. Output counts as
 * consumed when it is parsed, so a page that cannot keep up slows the program down.
 */
export class TerminalController {
  readonly #options: TerminalOptions
  readonly #surface: Surface
  readonly #screen: OrderedScreen
  readonly #state
  readonly #undo: (() => void)[] = []
  readonly #encoder = new TextEncoder()
  #handle: AttachHandle | undefined
  /** Of the current attachment. */
  #input: InputQueue | undefined
  /** Of the current attachment; absent when it was requested as viewer. */
  #typing: LeaseOnInput | undefined
  /** The shell's working directory, as it last reported it. */
  #folder: string | undefined
  #change: ((text: string) => string) | undefined
  #isDisposed = false

  constructor(options: TerminalOptions) {
    this.#options = options
    this.#state = createStore<TerminalState>({ ...INITIAL_STATE, ...options.size })
    this.#surface = new Surface({
      appearance: options.appearance ?? {},
      size: options.size ?? { cols: INITIAL_STATE.cols, rows: INITIAL_STATE.rows },
      allowsClipboardWrite: () => this.#options.allowsClipboardWrite === true,
      onInput: (bytes) => this.send(bytes),
      onText: (text) => this.type(text),
      onPaste: (text) => void this.paste(text),
      onSelect: () => {
        if (this.#options.copiesOnSelect === true) void this.copy()
      },
      onTitle: (title) => this.#update({ title: printable(title) }),
      onBell: () => this.#options.onBell?.(),
      opensFiles: () => this.#options.onOpenFile !== undefined,
      onOpenFile: (location) => this.#openFile(location),
      confirmLink: (link) => (this.#options.confirmLink ?? confirmInBrowser)(link),
      onFolder: (folder) => {
        this.#folder = folder
      },
      onFit: () => this.#fit(),
    })
    this.#screen = new OrderedScreen(this.#surface)
  }

  get state(): Store<TerminalState> {
    return this.#state
  }

  /** The screen, for search, selection and focus. */
  get surface(): Surface {
    return this.#surface
  }

  /** The current attachment. */
  get handle(): AttachHandle | undefined {
    return this.#handle
  }

  /** Renders into an element; connects the first time. */
  mount(element: HTMLElement): void {
    this.#surface.mount(element)
    if (this.#handle === undefined && !this.#isDisposed) this.#connect(this.#options.request)
    this.#fit()
  }

  /** Starts or joins again after the end, on the same screen. */
  restart(request: AttachRequest = this.#options.request): void {
    if (this.#isDisposed) return
    this.#drop()
    this.#surface.reset()
    this.#folder = undefined
    this.#state.set({ ...INITIAL_STATE })
    this.#connect(request)
  }

  /** Sends text as if it were typed. */
  type(text: string): void {
    const change = this.#change
    this.#change = undefined
    this.send(this.#encoder.encode(change === undefined ? text : change(text)))
  }

  /** Transforms the next typed text once, for modifier keys on the screen. */
  changeNextInput(change: ((text: string) => string) | undefined): void {
    this.#change = change
  }

  /** Sends input in order. A viewer who may drive takes free control with it. */
  send(bytes: Uint8Array): void {
    if (this.#state.get().role !== 'viewer') this.#input?.send(bytes)
    else if (this.canTakeControlByTyping) this.#typing?.hold(bytes)
  }

  /** True when typing takes free control. */
  get canTakeControlByTyping(): boolean {
    return this.#typing !== undefined && isLeaseFree(this.#state.get())
  }

  async paste(text: string): Promise<void> {
    const risk = checkPaste(text, {
      isBracketed: this.#surface.isPasteBracketed,
      asks: this.#options.asksBeforePaste ?? 'always',
    })
    if (risk !== undefined && (await this.#options.confirmPaste?.(risk)) !== true) return
    // Another program may run by now.
    this.send(this.#encoder.encode(preparePaste(text, this.#surface.isPasteBracketed)))
  }

  /** Copies the selection; false when there is none. */
  async copy(): Promise<boolean> {
    const text = this.#surface.selection
    if (text === '') return false
    await navigator.clipboard.writeText(text)
    return true
  }

  #openFile(location: FileLocation): void {
    const folder = this.#folder
    this.#options.onOpenFile?.(folder === undefined ? location : { ...location, folder })
  }

  /** Detaches and releases everything; the session continues. */
  dispose(): void {
    if (this.#isDisposed) return
    this.#isDisposed = true
    this.#drop()
    this.#surface.dispose()
  }

  #drop(): void {
    for (const undo of this.#undo.splice(0)) undo()
    this.#handle?.detach()
    this.#handle = undefined
    this.#input = undefined
    this.#typing = undefined
  }

  #connect(request: AttachRequest): void {
    const { url } = this.#options
    const { cols, rows } = isPane(request) ? this.#state.get() : this.#surface.proposedSize
    this.#screen.resize(cols, rows)
    const handle = attach({
      url,
      cols,
      rows,
      env: TERMINAL_ENV,
      request: {
        mode: 'pty',
        ...request,
      },
      credentials: async () => {
        const { getTicket } = this.#options
        if (getTicket === undefined) return {}
        return { protocols: [await ticketProtocol(getTicket, request, this.#handle?.session)] }
      },
      acknowledge: 'manual',
      onOutput: (_, bytes, done) => this.#screen.write(bytes, done),
      onScreen: (screen, done) => {
        this.#update({
          cols: screen.cols,
          rows: screen.rows,
        })
        this.#screen.redraw(screen, () => {
          this.#fit()
          done()
        })
      },
      onResized: (newCols, newRows) => {
        if (this.#state.get().role !== 'driver' || isPane(request)) this.#screen.resize(newCols, newRows)
        this.#update({
          cols: newCols,
          rows: newRows,
        })
        this.#fit()
      },
      onPresence: (presence) => {
        this.#update({ presence })
        this.#updateInput()
      },
      onAsked: (requestedBy) => this.#update({ requestedBy }),
      onGap: (from, to) => this.#update({ notice: `${to - from} bytes of output are no longer available` }),
      onWarning: (code, message, stopReason) => {
        const isStopping = code === 'shutting_down' || this.#state.get().isStopping
        this.#update({
          notice: printable(message),
          isStopping,
          stopReason: stopReason ?? this.#state.get().stopReason,
        })
      },
      onInputLost: (bytes) => this.#reportLostInput(bytes),
    })
    this.#handle = handle
    this.#input = new InputQueue({
      write: (bytes) => handle.write(bytes),
      onLost: (bytes) => this.#reportLostInput(bytes),
    })
    if (request.role !== 'viewer')
      this.#typing = new LeaseOnInput({
        ask: () => handle.ask(),
        send: (bytes) => this.#input?.send(bytes),
        lost: (bytes) => this.#reportLostInput(bytes),
      })
    this.#undo.push(
      handle.status.subscribe((status) => this.#changed(handle, status)),
      handle.isSilent.subscribe((isSilent) => this.#update({ isSilent })),
      watchNetwork(window, (withinMs) => handle.probe(withinMs)),
    )
  }

  #changed(handle: AttachHandle, status: ClientStatus): void {
    const before = this.#state.get()
    const role = status.kind === 'attached' ? status.role : before.role
    const { session, details } = handle
    this.#update({
      status,
      role,
      session,
      attachment: details?.attachment,
      authority: details?.authority,
      ...(role === 'driver' ? {} : { requestedBy: undefined }),
    })
    this.#updateInput()
    if (status.kind === 'exited') return this.#fit()
    if (status.kind !== 'attached') return
    if (before.status.kind === 'reconnecting') this.#restoreSize()
    else this.#fit()
  }

  /** Updates whether input is possible, and what happens to held input. */
  #updateInput(): void {
    const { status, role } = this.#state.get()
    const isOver = status.kind === 'exited' || status.kind === 'failed' || status.kind === 'detached'
    this.#surface.setReadOnly(isOver || (role === 'viewer' && !this.canTakeControlByTyping))
    this.#typing?.settle(this.#state.get())
  }

  /**
   * Output after a reconnect was written for the last reported size. The page's own banners still take space at this
   * point, so the element is measured afterwards.
   */
  #restoreSize(): void {
    const { cols, rows } = this.#state.get()
    this.#screen.resize(cols, rows)
    setTimeout(() => this.#fit(), 0)
  }

  /** A driver's terminal has the size of its element; others follow the driver's. */
  #fit(): void {
    const { status, role, cols: reportedCols, rows: reportedRows } = this.#state.get()
    // The size of a pane is tmux's.
    if (role === undefined || this.#isDisposed || isPane(this.#options.request)) return
    // After the exit no size is shared any more.
    if (role !== 'driver' && status.kind !== 'exited')
      return this.#surface.showWhole(reportedCols, reportedRows)
    // A hidden terminal keeps its size, for the program in it.
    if (!this.#surface.isVisible) return
    this.#surface.endShowWhole()
    const { cols, rows } = this.#surface.proposedSize
    if (cols === this.#surface.cols && rows === this.#surface.rows && this.#isReportedSize(cols, rows)) return
    this.#screen.resize(cols, rows)
    if (status.kind !== 'attached') return
    this.#handle?.resize(cols, rows)
    this.#update({ cols, rows })
  }

  #reportLostInput(bytes: number): void {
    this.#update({ notice: `${bytes} bytes of input were not delivered` })
  }

  #isReportedSize(cols: number, rows: number): boolean {
    const state = this.#state.get()
    return state.cols === cols && state.rows === rows
  }

  #update(part: Partial<TerminalState>): void {
    if (!this.#isDisposed) this.#state.set({ ...this.#state.get(), ...part })
  }
}
