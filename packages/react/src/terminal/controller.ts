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
 * What a terminal is made with. What may be undefined is looked up each time it is needed, so that a getter can answer with what is wanted
 * at the time.
 */
export interface TerminalOptions {
  /** Address of the server. */
  readonly url: string | URL
  /** What to start or join. */
  readonly request: AttachRequest
  /** A fresh ticket for each connection; without it the server must let the page in without. */
  readonly getTicket?: GetTicket | undefined
  readonly appearance?: Partial<Appearance>
  /** The size it has until its element has one: that of before, for a terminal that comes back behind something else. */
  readonly size?: Size
  /** Programs may put text into the clipboard (OSC 52). They can never read it. */
  readonly allowsClipboardWrite?: boolean | undefined
  readonly copiesOnSelect?: boolean | undefined
  /** Whether `confirmPaste` is asked about several lines; default: where they would run at once. */
  readonly asksBeforePaste?: AskBeforePaste | undefined
  /** The question; without it what is asked about is not pasted. */
  readonly confirmPaste?: ((paste: RiskyPaste) => Promise<boolean>) | undefined
  /** Asked before a link opens that says another address than it leads to; without it the browser's own question is. */
  readonly confirmLink?: ((link: SuspiciousLink) => Promise<boolean>) | undefined
  /** A path in the output was clicked with Ctrl or Cmd, or tapped. */
  readonly onOpenFile?: ((location: FileLocation) => void) | undefined
  readonly onBell?: (() => void) | undefined
}

/** What there is to know about a terminal, besides what is on it. */
export interface TerminalState {
  readonly status: ClientStatus
  readonly role: Role | undefined
  /** The most this attachment may become. */
  readonly authority: Role | undefined
  readonly session: string | undefined
  /** Name of this attachment in `presence`. */
  readonly attachment: string | undefined
  readonly title: string
  readonly presence: Presence | undefined
  /** Who asks this driver to hand over. */
  readonly requestedBy: string | undefined
  readonly cols: number
  readonly rows: number
  /** The server has not answered for some seconds. */
  readonly isSilent: boolean
  /** The server said that all of it is about to end. */
  readonly isStopping: boolean
  /** Why it stops, when the server said so. */
  readonly stopReason: StopReason | undefined
  /** Something to tell that does not end anything. */
  readonly notice: string | undefined
}

const INITIAL_STATE: TerminalState = {
  status: {
    is: 'connecting',
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

/** What programs are told of the terminal. */
const TERMINAL_ENV = { TERM: 'xterm-256color', COLORTERM: 'truecolor' }

/**
 * One terminal: what is drawn, what is typed, and the attachment between them. It knows no framework. Bytes go from the connection
 * to the screen and count as consumed when they were parsed, so a page that cannot keep up holds the program back.
 */
export class TerminalController {
  readonly #options: TerminalOptions
  readonly #surface: Surface
  readonly #screen: OrderedScreen
  readonly #state
  readonly #undo: (() => void)[] = []
  readonly #encoder = new TextEncoder()
  #handle: AttachHandle | undefined
  /** Of the attachment. */
  #input: InputQueue | undefined
  /** Of the attachment; absent where it was asked for to watch. */
  #typing: LeaseOnInput | undefined
  /** Where the shell last said to be. */
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

  /** What is drawn, for search, selection and focus. */
  get surface(): Surface {
    return this.#surface
  }

  /** The attachment, once there is one. */
  get handle(): AttachHandle | undefined {
    return this.#handle
  }

  /** Draws into an element from now on; the first time it also connects. */
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

  /** Makes something else of the next text that is typed, once: a key that is held on a screen. */
  changeNextInput(change: ((text: string) => string) | undefined): void {
    this.#change = change
  }

  /** Sends input in order, in pieces. Where nobody drives, whoever may begins with it. */
  send(bytes: Uint8Array): void {
    if (this.#state.get().role !== 'viewer') this.#input?.send(bytes)
    else if (this.canTakeControlByTyping) this.#typing?.hold(bytes)
  }

  /** Whether what is typed takes the lease, from nobody. */
  get canTakeControlByTyping(): boolean {
    return this.#typing !== undefined && isLeaseFree(this.#state.get())
  }

  async paste(text: string): Promise<void> {
    const risk = checkPaste(text, {
      isBracketed: this.#surface.isPasteBracketed,
      asks: this.#options.asksBeforePaste ?? 'would-run',
    })
    if (risk !== undefined && (await this.#options.confirmPaste?.(risk)) !== true) return
    // Another program may be there by the time of the answer.
    this.send(this.#encoder.encode(preparePaste(text, this.#surface.isPasteBracketed)))
  }

  /** Puts the selection into the clipboard; says whether there was one. */
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

  /** Leaves the session as it is and lets go of everything. */
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
    const { cols, rows } = this.#surface.proposedSize
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
        if (this.#state.get().role !== 'driver') this.#screen.resize(newCols, newRows)
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
    const role = status.is === 'attached' ? status.role : before.role
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
    if (status.is === 'exited') return this.#fit()
    if (status.is !== 'attached') return
    if (before.status.is === 'reconnecting') this.#restoreSize()
    else this.#fit()
  }

  /** Whether anything can be typed, and what becomes of what was. */
  #updateInput(): void {
    const { status, role } = this.#state.get()
    const isOver = status.is === 'exited' || status.is === 'failed' || status.is === 'detached'
    this.#surface.setReadOnly(isOver || (role === 'viewer' && !this.canTakeControlByTyping))
    this.#typing?.settle(this.#state.get())
  }

  /**
   * What comes now was written for the size that was told before the cut. What a page says of a cut takes room from the terminal, so its
   * own size is looked at when that is gone.
   */
  #restoreSize(): void {
    const { cols, rows } = this.#state.get()
    this.#screen.resize(cols, rows)
    setTimeout(() => this.#fit(), 0)
  }

  /** The driver's terminal has the size of its element; everybody else's has the driver's. */
  #fit(): void {
    const { status, role, cols: reportedCols, rows: reportedRows } = this.#state.get()
    if (role === undefined || this.#isDisposed) return
    // Of what has ended, nobody has a size that others follow.
    if (role !== 'driver' && status.is !== 'exited')
      return this.#surface.showWhole(reportedCols, reportedRows)
    // What cannot be seen keeps its size, for what runs in it.
    if (!this.#surface.isVisible) return
    this.#surface.endShowWhole()
    const { cols, rows } = this.#surface.proposedSize
    if (cols === this.#surface.cols && rows === this.#surface.rows && this.#isReportedSize(cols, rows)) return
    this.#screen.resize(cols, rows)
    if (status.is !== 'attached') return
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
